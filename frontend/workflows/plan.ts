import type { Dag } from '../../model-archiver/workflow-dag.ts'
import type { WorkflowNode } from './node.ts'

/** What every request of a workflow shares. */
export interface Plan {
  readonly dag: Dag
  readonly nodes: ReadonlyMap<string, WorkflowNode>
  /** Maximum bytes of one node's output: max_response_size. */
  readonly maxOutputBytes: number
  /** Writes one line to the log. */
  readonly warn: (message: string) => void
}
