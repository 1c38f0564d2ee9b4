import type { Dag } from '../../model-archiver/workflow-dag.ts'
import type { WorkflowNode } from './node.ts'

/** What every request of a workflow needs to know of it. */
export interface Plan {
  readonly dag: Dag
  readonly nodes: ReadonlyMap<string, WorkflowNode>
  /** Bytes of one node's output: max_response_size. */
  readonly maxOutputBytes: number
  /** One line for the log. */
  readonly warn: (message: string) => void
}
