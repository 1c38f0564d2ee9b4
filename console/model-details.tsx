import type { JSX } from 'preact'
import type {
  FailedOverview,
  FailureOverview,
  ModelOverview,
  OutcomeCounts,
  WorkerOverview,
} from '../common/server-events.ts'
import { Doc, Facts, logLink, ScrollTable } from './elements.tsx'
import { bytes, duration, number, timeOfDay } from './format.ts'
import { type Health, healthOfFailed, readyWorkers, type Watched } from './health.ts'
import { keyOf } from './history.ts'
import { type Actions, ModelActions, Unregister } from './model-actions.tsx'

/** The opened row of a model: cause, errors, workers, and actions. */
export function Details({ model, health, recent, actions }: Watched & { actions: Actions }): JSX.Element {
  const { failure, queue, counts, workers, errors } = model
  const key = keyOf(model)
  const facts: [string, string][] = [
    ['Unary requests', outcomes(counts.unary)],
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

/** The opened row of a model of the start that could not be loaded. */
export function FailedDetails({ model, actions }: { model: FailedOverview; actions: Actions }): JSX.Element {
  return (
    <>
      <Cause health={healthOfFailed(model)} failure={model.failure} />
      <p class="bar">
        <a href={logLink(undefined, model.failure.id)}>Log</a>
        <Doc page="troubleshooting.md">Troubleshooting</Doc>
        <Unregister model={model} open={0} actions={actions} />
      </p>
      <Facts facts={[['Archive', model.url]]} />
    </>
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
