import type { JSX } from 'preact'
import type { LoadingModel, OverviewEvent } from '../common/server-events.ts'
import type { ViewProps } from './app.tsx'
import { Chart, type Line } from './chart.tsx'
import { bytes, count, duration, number } from './format.ts'
import { problemsOf, watchedModels, type Watched } from './health.ts'
import { type History, keyOf, type Point, type Quantiles } from './history.ts'
import { Doc, Facts, logLink } from './elements.tsx'
import { Register, useActions } from './model-actions.tsx'
import { ModelTable } from './model-table.tsx'

/** Problems that the first lines name; the table has all. */
const MAX_PROBLEMS = 6

/** What is wrong, every model, the charts, and the server. */
export function Overview({ state, api, params }: ViewProps): JSX.Element {
  const { overview, history } = state
  const actions = useActions(api)
  if (overview === undefined) return <p class="note">Waiting for the server …</p>
  const models = watchedModels(overview, history)
  return (
    <>
      <Verdict overview={overview} models={models} />
      <Loading loading={overview.loading} />
      {models.length + overview.failed.length > 0 && (
        <ModelTable models={models} failed={overview.failed} actions={actions} opened={params.get('model')} />
      )}
      {actions.message}
      <Register actions={actions} open={models.length === 0} />
      <Charts history={history} />
      <Server {...overview} />
    </>
  )
}

/** The first lines of the page: is anything wrong? */
function Verdict({ overview, models }: { overview: OverviewEvent; models: readonly Watched[] }): JSX.Element {
  const { server, loading } = overview
  const problems = problemsOf(overview, models)
  const all = models.length + overview.failed.length
  const level = problems[0]?.health.level ?? (server.draining || models.length === 0 ? 'warn' : 'good')
  return (
    <section class={`verdict ${level}`} aria-label="Health">
      <p>
        <strong>
          {server.draining && stopping(server)}
          {!server.draining && problems.length === 0 && allIsWell(models)}
          {!server.draining &&
            problems.length > 0 &&
            `${problems.length} of ${count(all, 'model')} ${problems.length === 1 ? 'has a problem' : 'have problems'}.`}
        </strong>
        {problems.length === 0 && loading.length > 0 && ` ${count(loading.length, 'model')} loading.`}
      </p>
      {problems.length > 0 && (
        <ul>
          {problems.slice(0, MAX_PROBLEMS).map(({ model, health }) => (
            <li key={keyOf(model)}>
              <a href={`#?${new URLSearchParams({ model: keyOf(model) }).toString()}`}>
                <bdi>{model.modelName}</bdi>
                {model.modelVersion !== undefined && ` ${model.modelVersion}`}
              </a>{' '}
              <b>{health.label}</b>: <bdi>{health.cause}</bdi>{' '}
              <a href={logLink(keyOf(model), health.logText)}>Log</a>
            </li>
          ))}
          {problems.length > MAX_PROBLEMS && (
            <li>and {problems.length - MAX_PROBLEMS} more, first in the table</li>
          )}
        </ul>
      )}
    </section>
  )
}

function stopping({ openRequests }: OverviewEvent['server']): string {
  return `The server is stopping: it refuses new requests, and ${number(openRequests)} open ones end.`
}

function allIsWell(models: readonly Watched[]): string {
  if (models.length === 0) return 'No model is registered. Register one below.'
  const ready = models.filter(({ model }) => model.state === 'ready').length
  const requests = models.reduce((sum, { recent }) => sum + (recent?.requests ?? 0), 0)
  const lately = requests === 0 ? 'no requests' : `${count(requests, 'request')} and no failures`
  return `All is well: ${ready} of ${count(models.length, 'model')} ready, ${lately} in the last minute.`
}

/** Addresses and what else belongs to the process. */
function Server({ at, server }: OverviewEvent): JSX.Element {
  const facts: [string, string][] = [
    ['State', server.draining ? 'stopping' : 'running'],
    ['Up for', duration(Date.parse(at) - Date.parse(server.startedAt))],
    ['Open requests', number(server.openRequests)],
    ['Memory of the server', bytes(server.memoryBytes)],
    ['Processor time', duration(server.cpuSeconds * 1000)],
    ['Version', `${server.version}, Node ${server.node}, pid ${server.pid}`],
    ...server.listening.map(({ name, address }): [string, string] => [name, address]),
  ]
  return (
    <section aria-label="Server">
      <h2>Server</h2>
      <Facts facts={facts} />
      <p class="note">
        Metrics for Prometheus: <Doc page="metrics-and-logs.md">Metrics and logs</Doc>. Other problems:{' '}
        <Doc page="troubleshooting.md">Troubleshooting</Doc>.
      </p>
    </section>
  )
}

function Charts({ history: { points } }: { history: History }): JSX.Element {
  const quantiles = (of: (point: Point) => Quantiles): Line[] => [
    { label: 'p50', values: points.map((point) => of(point).p50) },
    { label: 'p99', values: points.map((point) => of(point).p99) },
  ]
  const rates: Line[] = [
    { label: 'ended', values: points.map((point) => point.requestsPerSecond) },
    { label: 'failed', values: points.map((point) => point.failuresPerSecond) },
  ]
  const items: Line[] = [{ label: 'sent', values: points.map((point) => point.itemsPerSecond) }]
  const charts: [string, Line[], (value: number) => string][] = [
    ['Requests per second', rates, number],
    ['Items per second', items, number],
    ['Time to first item', quantiles(({ firstResponse }) => firstResponse), duration],
    ['Gap between items', quantiles(({ gaps }) => gaps), duration],
  ]
  return (
    <section aria-label="All models, the last three minutes">
      <h2>All models, the last three minutes</h2>
      <div class="charts">
        {charts.map(([title, lines, format]) => (
          <Chart title={title} times={points.map(({ at }) => at)} lines={lines} format={format} />
        ))}
      </div>
    </section>
  )
}

function Loading({ loading }: { loading: readonly LoadingModel[] }): JSX.Element | null {
  if (loading.length === 0) return null
  return (
    <section aria-label="Loading">
      <ul class="loading">
        {loading.map(({ modelName, url, phase, receivedBytes, totalBytes, ageMs }) => (
          <li>
            <b>{modelName ?? url}</b>: {phase} for {duration(ageMs)}
            {receivedBytes !== undefined && `, ${bytes(receivedBytes)}`}
            {totalBytes !== undefined && ` of ${bytes(totalBytes)} `}
            {totalBytes !== undefined && (
              <progress
                max={totalBytes}
                value={receivedBytes ?? 0}
                aria-label={`Progress of ${modelName ?? url}`}
              />
            )}
          </li>
        ))}
      </ul>
    </section>
  )
}
