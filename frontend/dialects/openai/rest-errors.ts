import type { ErrorCode, ServeError } from '../../../common/errors.ts'
import type { HttpCall } from '../../edge/http/http-call.ts'
import type { Refusal } from '../../edge/http/http-reply.ts'
import { baseHeaders } from '../../edge/http/safe-response.ts'

/** Converts errors to the OpenAI API (docs/openai.md). */
interface OpenAIAnswer {
  readonly status: number
  readonly type: string
  readonly code: string | null
}

const answer = (status: number, type: string, code: string | null = null): OpenAIAnswer => ({
  status,
  type,
  code,
})
const invalid = (status: number, code: string | null = null): OpenAIAnswer =>
  answer(status, 'invalid_request_error', code)
const server = (status: number, code: string | null = null): OpenAIAnswer =>
  answer(status, 'server_error', code)

const ANSWERS: Partial<Record<ErrorCode, OpenAIAnswer>> = {
  INVALID_ARGUMENT: invalid(400),
  MALFORMED_BODY: invalid(400),
  UNSUPPORTED_ENCODING: invalid(415, 'unsupported_encoding'),
  PAYLOAD_TOO_LARGE: invalid(413, 'request_too_large'),
  ROUTE_NOT_FOUND: invalid(404, 'unknown_url'),
  METHOD_NOT_ALLOWED: invalid(405, 'method_not_allowed'),
  UNAUTHORIZED: invalid(401, 'invalid_api_key'),
  // Limits on requests, which OpenAI's own server names so.
  RATE_LIMITED: answer(429, 'requests', 'rate_limit_exceeded'),
  FOREIGN_PAGE: answer(403, 'permission_error', 'foreign_page'),
  MODEL_NOT_FOUND: invalid(404, 'model_not_found'),
  VERSION_NOT_FOUND: invalid(404, 'model_not_found'),
  MODEL_NOT_READY: server(503, 'model_not_ready'),
  QUEUE_FULL: answer(429, 'rate_limit_error', 'rate_limit_exceeded'),
  NO_WORKER: server(503, 'model_not_ready'),
  MODEL_FAILED: server(503, 'model_failed'),
  SHUTTING_DOWN: server(503, 'shutting_down'),
  CANCELLED: server(503, 'cancelled'),
  QUEUE_TIMEOUT: server(503, 'queue_timeout'),
  RESPONSE_TIMEOUT: server(504, 'timeout'),
  REQUEST_TIMEOUT: server(504, 'timeout'),
  DEADLINE_EXCEEDED: server(504, 'timeout'),
  CLIENT_STALLED: invalid(408, 'client_stalled'),
  OUT_OF_MEMORY: server(507, 'out_of_memory'),
  WORKER_KILLED: server(507, 'out_of_memory'),
}

function answerOf(error: ServeError): OpenAIAnswer {
  if (error.code !== 'HANDLER_REJECTED') return ANSWERS[error.code] ?? server(500)
  const status = error.status ?? 500
  const type = status === 429 ? 'rate_limit_error' : status < 500 ? 'invalid_request_error' : 'server_error'
  return answer(status, type, error.reason ?? null)
}

/**
 * Retryable codes. For all others the header `x-should-retry: false` tells OpenAI's clients not to run the
 * handler again.
 */
const WORTH_RETRYING: ReadonlySet<ErrorCode> = new Set([
  'QUEUE_FULL',
  'RATE_LIMITED',
  'MODEL_NOT_READY',
  'NO_WORKER',
  'SHUTTING_DOWN',
  'QUEUE_TIMEOUT',
  'WORKER_LOST',
])

/** A failure as this API's clients get it. */
export function refusal(call: HttpCall, error: ServeError): Refusal {
  const { headers, ...answer } = openaiFailure(error, call.modelMeant(error))
  return {
    ...answer,
    headers: [...baseHeaders(call.requestId, false), ...headers, ...call.rateHeaders()],
  }
}

/**
 * The same without what depends on the call.
 * @param meant name of the model that the client may have meant; the clients show only the message
 */
export function openaiFailure(error: ServeError, meant?: string): Refusal {
  const { status, type, code } = answerOf(error)
  const message = meant === undefined ? error.message : `${error.message}; did you mean ${meant}?`
  return {
    status,
    json: JSON.stringify({ error: { message, type, param: error.param ?? null, code } }),
    headers: retryHeaders(error),
  }
}

/** OpenAI's clients read the milliseconds first. */
function retryHeaders({ code, retryAfter, retryAfterMs }: ServeError): string[] {
  if (retryAfter !== undefined) return ['retry-after', retryAfter, 'retry-after-ms', String(retryAfterMs)]
  return WORTH_RETRYING.has(code) ? ['retry-after', '1'] : ['x-should-retry', 'false']
}
