import { headerLine } from '../../common/header-lines.ts'
import type { NodeSpec } from '../../model-archiver/workflow-spec.ts'
import { FUNCTION_HEADER } from '../../model-archiver/workflow-functions.ts'
import type { Model } from '../models/model.ts'
import { TimeLimit } from '../jobs/time-limit.ts'

/** One node of a workflow: the model that does its work, and the rules for its tries. */
export class WorkflowNode {
  readonly name: string
  readonly model: Model
  /** How often a failed try is repeated. */
  readonly retries: number
  /** What one try may take. One chain of timers for all requests. */
  readonly limit: TimeLimit
  /** What the request's headers get, so that the handler's worker finds the function. */
  readonly extraHeaders: string

  /** `shared`: the model serves several functions and must be told which one is meant. */
  constructor(spec: NodeSpec, model: Model, shared: boolean) {
    this.name = spec.name
    this.model = model
    this.retries = spec.retryAttempts
    this.limit = new TimeLimit(spec.timeoutMs, 'RESPONSE_TIMEOUT', 'the node did not answer', 'timeout-ms')
    // The last value of a header counts, so no client can choose another function.
    this.extraHeaders = shared ? headerLine(FUNCTION_HEADER, spec.name) : ''
  }
}
