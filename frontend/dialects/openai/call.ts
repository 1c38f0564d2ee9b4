import type { OpenAIRequest } from '../../../common/openai/request.ts'
import type { Exchange } from '../../edge/http/exchange.ts'
import type { EventStream } from '../../edge/http/sse.ts'
import type { JobRequest } from '../../jobs/job-request.ts'

/** What the mappings need of one request. */
export interface OpenAICall {
  readonly exchange: Exchange
  /** The response as events; `events.reply` for a unary response. */
  readonly events: EventStream
  readonly request: OpenAIRequest
  /** The client's body, with the model from the path. */
  readonly body: Buffer
  /** What all jobs of the request have in common. */
  readonly facts: Omit<JobRequest, 'method' | 'parts'>
}
