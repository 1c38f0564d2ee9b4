import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type {
  FailedOverview,
  FailureOverview,
  ModelOverview,
  OutcomeCounts,
  WorkerOverview,
} from '../common/server-events.ts'
import { bytes, duration, number, timeOfDay } from './format.ts'
import { type Health, healthOfFailed, readyWorkers, type Watched } from './health.ts'
import { failuresOf, keyOf } from './history.ts'
import { Doc, logLink } from './links.tsx'
import { type Actions, ModelActions, Unregister } from './model-actions.tsx'
import { Facts, ScrollTable } from './scroll-table.tsx'

/** Titles with their explanations. */
const COLUMNS: readonly (readonly [title: string, meaning: string])[] = [
  ['Model', ''],
  ['State', ''],
  ['Requests/s', 'Requests that ended, in the last minute'],
  ['Failures/s', 'Requests that failed or timed out, in the last minute; in brackets all since registration'],
  ['First item p50', 'Median time to the first item, in the last minute'],
  ['p99', '99 % of first items came within this time, in the last minute'],
  ['Queue', 'Requests that wait for a worker'],
  ['Workers', 'Workers that are ready'],
  ['Memory', 'Memory of all workers'],
]

/** All models, a row each, which opens to workers and errors. `opened`: the one that the address names. */
export function ModelTable(props: {
  models: readonly Watched[]
  failed: readonly FailedOverview[]
  actions: Actions
  opened: string | null
}): JSX.Element {
  const { models, failed, actions, opened } = props
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set())
  useEffect(() => {
    if (opened === null) return
    setOpen(new Set([...open, opened]))
    // Below the first lines, which can be long.
    requestAnimationFrame(() => document.getElementById(rowId(opened))?.scrollIntoView({ block: 'nearest' }))
  }, [opened])
  const toggle = (key: string): void => {
    const next = new Set(open)
    if (!next.delete(key)) next.add(key)
    setOpen(next)
  }
  return (
    <div class="scroll models" tabIndex={0} role="region" aria-label="Models">
      <table>
        <thead>
          <tr>
            {COLUMNS.map(([title, meaning]) => (
              <th scope="col" title={meaning}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {failed.map((model) => {
            const key = keyOf(model)
            return (
              <FailedRow
                key={key}
                model={model}
                actions={actions}
                isOpen={open.has(key)}
                onToggle={() => toggle(key)}
              />
            )
          })}
          {models.map((watched) => {
            const key = keyOf(watched.model)
            return (
              <Row
                key={key}
                {...watched}
                actions={actions}
                isOpen={open.has(key)}
                onToggle={() => toggle(key)}
              />
            )
          })}
        </tbody>
      </table>
    </div>
  )
}

function rowId(key: string): string {
  return `model ${key}`
}

/** What a row needs beside its model. */
interface RowProps {
  actions: Actions
  isOpen: boolean
  onToggle: () => void
}

/** A model of the start that could not be loaded. */
function FailedRow({ model, actions, isOpen, onToggle }: RowProps & { model: FailedOverview }): JSX.Element {
  const health = healthOfFailed(model)
  return (
    <>
      <tr id={rowId(keyOf(model))}>
        <NameCell model={model} isOpen={isOpen} onToggle={onToggle} />
        <StateCell health={health} />
        <td colSpan={COLUMNS.length - 2} />
      </tr>
      {isOpen && (
        <tr class="opened">
          <td colSpan={COLUMNS.length}>
            <Cause health={health} failure={model.failure} />
            <p class="bar">
              <a href={logLink(undefined, model.failure.id)}>Log</a>
              <Doc page="troubleshooting.md">Troubleshooting</Doc>
              <Unregister model={model} open={0} actions={actions} />
            </p>
            <Facts facts={[['Archive', model.url]]} />
          </td>
        </tr>
      )}
    </>
  )
}

function NameCell(props: {
  model: ModelOverview | FailedOverview
  isOpen: boolean
  onToggle: () => void
  children?: ComponentChildren
}): JSX.Element {
  return (
    <th scope="row">
      <button type="button" aria-expanded={props.isOpen} onClick={props.onToggle}>
        <bdi>{props.model.modelName}</bdi> <small>{props.model.modelVersion}</small>
      </button>
      {props.children}
    </th>
  )
}

function StateCell({ health: { level, label, cause } }: { health: Health }): JSX.Element {
  return (
    <td class="cause" title={cause}>
      <span class={`state ${level}`}>{label}</span> <bdi>{cause}</bdi>
    </td>
  )
}

function Cause({ health, failure }: { health: Health; failure: FailureOverview | undefined }): JSX.Element {
  return (
    <p role="alert" class={health.level}>
      <bdi>{health.cause}</bdi>
      {failure !== undefined && (
        <small>
          {' '}
          (last tried at {timeOfDay(failure.at)}, <a href={logLink(undefined, failure.id)}>id {failure.id}</a>{' '}
          in the log)
        </small>
      )}
    </p>
  )
}

function Row(props: Watched & RowProps): JSX.Element {
  const { model, health, recent, isOpen, onToggle } = props
  const { isDefault, trafficShare, queue, workers } = model
  const failures = failuresOf(model)
  return (
    <>
      <tr id={rowId(keyOf(model))}>
        <NameCell model={model} isOpen={isOpen} onToggle={onToggle}>
          {trafficShare !== undefined && <span class="badge">{number(trafficShare * 100)} % of traffic</span>}
          {trafficShare === undefined && !isDefault && <span class="badge">not default</span>}
        </NameCell>
        <StateCell health={health} />
        <td>{recent === undefined ? '–' : number(recent.requestsPerSecond)}</td>
        <td class={recent !== undefined && recent.failures > 0 ? 'failed' : undefined}>
          {recent === undefined ? '–' : number(recent.failuresPerSecond)}
          {failures > 0 && <small> ({number(failures)})</small>}
        </td>
        <td>{duration(recent?.firstResponse.p50)}</td>
        <td>{duration(recent?.firstResponse.p99)}</td>
        <td>{number(queue.waiting)}</td>
        <td>
          {readyWorkers(model)} of {workers.length}
        </td>
        <td>{bytes(memoryOf(workers))}</td>
      </tr>
      {isOpen && (
        <tr class="opened">
          <td colSpan={COLUMNS.length}>
            <Details {...props} />
          </td>
        </tr>
      )}
    </>
  )
}

function memoryOf(workers: readonly WorkerOverview[]): number | undefined {
  const known = workers.flatMap(({ memoryBytes }) => memoryBytes ?? [])
  return known.length === 0 ? undefined : known.reduce((sum, each) => sum + each)
}

/** What an opened row has: the cause, errors, workers, and what can be done. */
function Details({ model, health, recent, actions }: Watched & { actions: Actions }): JSX.Element {
  const { failure, queue, counts, workers, errors } = model
  const key = keyOf(model)
  const facts: [string, string][] = [
    ['Whole answers', outcomes(counts.unary)],
    ['Streams', outcomes(counts.stream)],
    ['Sent', `${number(counts.items)} items, ${bytes(counts.bytes)}`],
    ['Open requests', `${number(model.open)} (${number(model.streams)} streaming)`],
    ['Queue', `${number(queue.waiting)} waiting, room for ${number(queue.room)} more`],
    ['First item', `p50 ${duration(recent?.firstResponse.p50)}, p99 ${duration(recent?.firstResponse.p99)}`],
    ['Workers', workersText(model)],
    ['Runtime', model.runtime],
  ]
  return (
    <>
      {health.cause !== undefined && <Cause health={health} failure={failure} />}
      <p class="bar">
        <a href={`#playground?${new URLSearchParams({ model: key }).toString()}`}>Playground</a>
        <a href={logLink(key, '')}>Log</a>
        <a href={`#requests?${new URLSearchParams({ filter: model.modelName }).toString()}`}>Open requests</a>
        {failure !== undefined && <Doc page="troubleshooting.md">Troubleshooting</Doc>}
      </p>
      {errors.length > 0 && <Errors model={model} />}
      {workers.length > 0 && <Workers workers={workers} />}
      <Facts facts={facts} />
      <ModelActions model={model} actions={actions} />
    </>
  )
}

function workersText(model: ModelOverview): string {
  const { minWorkers, maxWorkers, workers } = model
  const wanted = minWorkers === maxWorkers ? '' : `, ${minWorkers} to ${maxWorkers} by load`
  return `${readyWorkers(model)} of ${workers.length} ready${wanted}`
}

function outcomes({ finished, failed, cancelled, timed_out, client_stalled }: OutcomeCounts): string {
  const parts: [number, string][] = [
    [failed, 'failed'],
    [cancelled, 'cancelled'],
    [timed_out, 'timed out'],
    [client_stalled, 'stalled by the client'],
  ]
  const others = parts.filter(([some]) => some > 0).map(([some, word]) => `, ${number(some)} ${word}`)
  return `${number(finished)} finished${others.join('')}`
}

function Errors({ model }: { model: ModelOverview }): JSX.Element {
  return (
    <ScrollTable
      label="Failures"
      columns={['Failed with', 'Requests', 'Last at', 'Last reason', 'Last request']}
    >
      {model.errors
        .toSorted((one, other) => other.count - one.count)
        .map(({ code, count, at, reason, requestId }) => (
          <tr key={code}>
            <th scope="row" class="failed">
              {code}
            </th>
            <td class="failed">{number(count)}</td>
            <td>{timeOfDay(at)}</td>
            <td>{reason}</td>
            <td>
              <a href={logLink(keyOf(model), requestId)}>{requestId}</a>
            </td>
          </tr>
        ))}
    </ScrollTable>
  )
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
          <td class={restarts > 0 ? 'failed' : undefined}>{number(restarts)}</td>
          <td>{lastExit === undefined ? '–' : <LastExit {...lastExit} />}</td>
        </tr>
      ))}
    </ScrollTable>
  )
}

function LastExit({ at, cause, lines }: NonNullable<WorkerOverview['lastExit']>): JSX.Element {
  return (
    <details>
      <summary>
        {timeOfDay(at)} {cause}
      </summary>
      <pre>{lines.join('\n') || 'It wrote nothing.'}</pre>
    </details>
  )
}
