import type { JSX } from 'preact'
import type {
  LoadingModel,
  ModelOverview,
  OutcomeCounts,
  OverviewEvent,
  WorkerOverview,
} from '../common/server-events.ts'
import type { ViewProps } from './app.tsx'
import { Chart, type Line } from './chart.tsx'
import { bytes, duration, number, timeOfDay } from './format.ts'
import type { History, Point, Quantiles } from './history.ts'
import { ModelTitle } from './model-title.tsx'
import { ScrollTable } from './scroll-table.tsx'

/** The server, its charts, and its models with their workers. */
export function Overview({ state }: ViewProps): JSX.Element {
  const { overview, history } = state
  if (overview === undefined) return <p class="note">Waiting for the server …</p>
  return (
    <>
      <Facts {...overview} />
      <Charts history={history} />
      <Loading loading={overview.loading} />
      <h2>Models</h2>
      {overview.models.length === 0 && (
        <p class="note">
          No model is registered. <a href="#models">Register one.</a>
        </p>
      )}
      {overview.models.map((model) => (
        <Model key={`${model.modelName} ${model.modelVersion}`} model={model} />
      ))}
    </>
  )
}

function Facts({ at, server }: OverviewEvent): JSX.Element {
  const facts: [string, string][] = [
    ['State', server.draining ? 'stopping' : 'running'],
    ['Up', duration(Date.parse(at) - Date.parse(server.startedAt))],
    ['Open requests', number(server.openRequests)],
    ['Memory', bytes(server.memoryBytes)],
    ['Processor time', duration(server.cpuSeconds * 1000)],
    ['Version', `${server.version}, Node ${server.node}, pid ${server.pid}`],
    ...server.listening.map(({ name, address }): [string, string] => [name, address]),
  ]
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <Fact name={name} value={value} />
      ))}
    </dl>
  )
}

function Charts({ history: { points } }: { history: History }): JSX.Element {
  const times = points.map(({ at }) => at)
  const quantiles = (of: (point: Point) => Quantiles): Line[] => [
    { label: 'p50', values: points.map((point) => of(point).p50) },
    { label: 'p99', values: points.map((point) => of(point).p99) },
  ]
  return (
    <section class="charts" aria-label="Last three minutes">
      <Chart
        title="Requests per second"
        times={times}
        lines={[{ label: 'ended', values: points.map((point) => point.requestsPerSecond) }]}
        format={number}
      />
      <Chart
        title="Items per second"
        times={times}
        lines={[{ label: 'sent', values: points.map((point) => point.itemsPerSecond) }]}
        format={number}
      />
      <Chart
        title="Time to first item"
        times={times}
        lines={quantiles(({ firstResponse }) => firstResponse)}
        format={duration}
      />
      <Chart
        title="Gap between items"
        times={times}
        lines={quantiles(({ gaps }) => gaps)}
        format={duration}
      />
    </section>
  )
}

function Loading({ loading }: { loading: readonly LoadingModel[] }): JSX.Element | null {
  if (loading.length === 0) return null
  return (
    <section aria-labelledby="loading">
      <h2 id="loading">Loading</h2>
      <ul>
        {loading.map(({ modelName, url, phase, receivedBytes, totalBytes, ageMs }) => (
          <li>
            {modelName ?? url}: {phase} for {duration(ageMs)}
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

function Model({ model }: { model: ModelOverview }): JSX.Element {
  const { failure, queue, open, streams, counts } = model
  return (
    <article class="model">
      <h3>
        <ModelTitle {...model} />
        {model.trafficShare !== undefined && (
          <span class="badge">{number(model.trafficShare * 100)} % of the traffic</span>
        )}
      </h3>
      {failure !== undefined && (
        <p role="alert">
          <bdi>{failure.reason}</bdi>{' '}
          <small>
            (last tried at {timeOfDay(failure.at)}, id {failure.id} in the log)
          </small>
        </p>
      )}
      <dl class="facts">
        <Fact name="Open" value={`${number(open)}, of them ${number(streams)} streaming`} />
        <Fact name="Queue" value={`${number(queue.waiting)} waiting, room for ${number(queue.room)}`} />
        <Fact
          name="Workers"
          value={`${model.workers.length}, ${model.minWorkers} to ${model.maxWorkers} wanted`}
        />
        <Fact name="Runtime" value={model.runtime} />
        <Fact name="Streams" value={outcomes(counts.stream)} />
        <Fact name="Unary" value={outcomes(counts.unary)} />
        <Fact name="Sent" value={`${number(counts.items)} items, ${bytes(counts.bytes)}`} />
      </dl>
      {model.workers.length > 0 && <Workers workers={model.workers} />}
    </article>
  )
}

function Fact({ name, value }: { name: string; value: string }): JSX.Element {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  )
}

function outcomes({ finished, failed, cancelled, timed_out, client_stalled }: OutcomeCounts): string {
  const parts: [number, string][] = [
    [failed, 'failed'],
    [cancelled, 'cancelled'],
    [timed_out, 'timed out'],
    [client_stalled, 'stalled by the client'],
  ]
  const others = parts.filter(([count]) => count > 0).map(([count, word]) => `, ${number(count)} ${word}`)
  return `${number(finished)} finished${others.join('')}`
}

function Workers({ workers }: { workers: readonly WorkerOverview[] }): JSX.Element {
  return (
    <ScrollTable
      label="Workers"
      columns={['Worker', 'Process', 'State', 'Memory', 'In flight', 'Restarts', 'Last exit']}
    >
      {workers.map(({ id, pid, state, memoryBytes, inFlight, restarts, lastExit }) => (
        <tr key={id}>
          <th scope="row">{id}</th>
          <td>{pid ?? '–'}</td>
          <td>{state}</td>
          <td>{bytes(memoryBytes)}</td>
          <td>{number(inFlight)}</td>
          <td>{number(restarts)}</td>
          <td>
            {lastExit === undefined ? (
              '–'
            ) : (
              <details>
                <summary>
                  {timeOfDay(lastExit.at)} {lastExit.cause}
                </summary>
                <pre>{lastExit.lines.join('\n')}</pre>
              </details>
            )}
          </td>
        </tr>
      ))}
    </ScrollTable>
  )
}
