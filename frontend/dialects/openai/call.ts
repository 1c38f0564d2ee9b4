import type { OpenAIRequest } from '../../../common/openai/request.ts'
import type { Exchange } from '../../edge/http/exchange.ts'
import type { EventStream } from '../../edge/http/sse.ts'
import type { ModelStatus } from '../../models/operations.ts'

/** What the mappings need of one request. */
export interface OpenAICall {
  readonly exchange: Exchange
  /** The response as events; `events.reply` for a unary response. */
  readonly events: EventStream
  readonly request: OpenAIRequest
  /** The client's body, with the model from the path. */
  readonly body: Buffer
  readonly model: ModelStatus
  /** The version in the path; absent: the default version. */
  readonly modelVersion: string | undefined
  /** See JobRequest. */
  readonly routedTo: string | undefined
  /** The client's headers. */
  readonly headers: string
  /** See JobRequest. */
  readonly credentials: string | undefined
  /** The operation, for handlers that do not serve it natively. */
  readonly urlPath: string
}
