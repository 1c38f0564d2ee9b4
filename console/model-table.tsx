import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { FailedOverview, ModelOverview, WorkerOverview } from '../common/server-events.ts'
import { bytes, duration, number } from './format.ts'
import { type Health, healthOfFailed, readyWorkers, type Watched } from './health.ts'
import { failuresOf, keyOf } from './history.ts'
import type { Actions } from './model-actions.tsx'
import { Details, FailedDetails } from './model-details.tsx'

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
        {COLUMNS.slice(2).map(([title]) => (
          <td key={title}>–</td>
        ))}
      </tr>
      {isOpen && (
        <tr class="opened">
          <td colSpan={COLUMNS.length}>
            <FailedDetails model={model} actions={actions} />
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
          {failures > 0 && <small title="Failures since registration"> ({number(failures)})</small>}
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
