import type { JSX } from 'preact'
import type { ModelOverview } from '../common/server-events.ts'

/** What a version is called on every view, with its state; for a heading. */
export function ModelTitle({ modelName, modelVersion, state, isDefault }: ModelOverview): JSX.Element {
  return (
    <>
      {modelName} <small>{modelVersion}</small> <span class={`state ${state}`}>{state}</span>
      {isDefault && <span class="badge">default</span>}
    </>
  )
}
