import type { ModelStatus } from '../../models/operations.ts'
import type { OpenAIRequest } from './request.ts'
import type { RestState } from '../../edge/http/rest-state.ts'
import type { SseReply } from '../../edge/http/sse.ts'

/** One request on its way to a model: what the mappings need. */
export interface OpenAICall {
  readonly state: RestState
  readonly reply: SseReply
  readonly request: OpenAIRequest
  /** The body as it came, with the model that the path names. */
  readonly body: Buffer
  readonly model: ModelStatus
  /** What the path names; absent: the default version. */
  readonly modelVersion: string | undefined
  /** The client's headers. */
  readonly headers: string
  /** The operation, as handlers see it that do not answer it natively. */
  readonly urlPath: string
}
