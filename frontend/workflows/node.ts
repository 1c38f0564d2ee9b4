import { headerLine } from '../../common/headers.ts'
import type { NodeSpec } from '../../model-archiver/workflow-spec.ts'
import { FUNCTION_HEADER } from '../../model-archiver/prepare-workflow.ts'
import type { Model } from '../models/model.ts'
import { TimeLimit } from '../jobs/time-limit.ts'

/** One node of a workflow: its model, and its retries. */
export class WorkflowNode {
  readonly name: string
  readonly model: Model
  /** Number of retries. */
  readonly retries: number
  /** Time limit of one try; one timer chain serves all requests. */
  readonly limit: TimeLimit
  /** Added to the request's headers, so that the worker finds the function. */
  readonly extraHeaders: string

  /** `shared`: the model serves several functions and needs the name of one. */
  constructor(spec: NodeSpec, model: Model, shared: boolean) {
    this.name = spec.name
    this.model = model
    this.retries = spec.retryAttempts
    this.limit = new TimeLimit(spec.timeoutMs, 'RESPONSE_TIMEOUT', 'the node did not answer', 'timeout-ms')
    // The last value of a header wins, so clients cannot select another function.
    this.extraHeaders = shared ? headerLine(FUNCTION_HEADER, spec.name) : ''
  }
}
