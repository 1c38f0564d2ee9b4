import type { OpenAIRequest } from '../../../common/openai/request.ts'
import type { Exchange } from '../../edge/http/exchange.ts'
import type { EventStream } from '../../edge/http/sse.ts'
import type { ModelStatus } from '../../models/operations.ts'

/** One request on its way to a model: what the mappings need. */
export interface OpenAICall {
  readonly exchange: Exchange
  /** Its reply as events; `events.reply` for a whole answer. */
  readonly events: EventStream
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
