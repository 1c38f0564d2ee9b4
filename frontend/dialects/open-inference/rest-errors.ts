import { type ErrorCode, ServeError } from '../../../common/errors.ts'
import { errorText } from './error-text.ts'
import type { HttpCall } from '../../edge/http/http-call.ts'
import { baseHeaders } from '../../edge/http/safe-response.ts'
import { isFinalStatus, type Refusal } from '../../edge/http/http-reply.ts'

/**
 * The HTTP status of each code, chosen by what Seldon Core's proxies do with it (docs/seldon.md): after 400
 * and 404 its agent loads the model and repeats the request, and its Envoy repeats a request after 5xx. The
 * others are 500.
 */
const STATUSES: Partial<Record<ErrorCode, number>> = {
  INVALID_ARGUMENT: 422,
  MALFORMED_BODY: 422,
  INVALID_TENSOR: 422,
  TENSOR_MISMATCH: 400,
  UNSUPPORTED_ENCODING: 415,
  PAYLOAD_TOO_LARGE: 413,
  ROUTE_NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  UNAUTHORIZED: 401,
  INVALID_API_KEY: 401,
  FOREIGN_PAGE: 403,
  API_DISABLED: 403,
  RATE_LIMITED: 429,
  MODEL_NOT_FOUND: 404,
  VERSION_NOT_FOUND: 404,
  MODEL_NOT_READY: 503,
  MODEL_FAILED: 503,
  CONFLICT: 409,
  DEFAULT_VERSION: 409,
  INVALID_MODEL: 422,
  INVALID_ARCHIVE: 422,
  UNTRUSTED_ARCHIVE: 422,
  DOWNLOAD_FAILED: 422,
  WORKFLOW_NOT_FOUND: 404,
  INVALID_WORKFLOW: 422,
  INVALID_DAG: 422,
  // Not 404: the model is there.
  REQUEST_NOT_FOUND: 409,
  NO_WORKER: 503,
  QUEUE_FULL: 429,
  SHUTTING_DOWN: 503,
  QUEUE_TIMEOUT: 503,
  RESPONSE_TIMEOUT: 504,
  REQUEST_TIMEOUT: 504,
  DEADLINE_EXCEEDED: 504,
  CLIENT_STALLED: 408,
  CANCELLED: 503,
  OUT_OF_MEMORY: 507,
  WORKER_LOST: 503,
  WORKER_KILLED: 507,
}

/** Codes after which a repeated request may succeed. */
const RETRY: ReadonlySet<ErrorCode> = new Set(['QUEUE_FULL', 'MODEL_NOT_READY', 'QUEUE_TIMEOUT'])

/** 5xx that a proxy may repeat at once: nothing has begun, and another server can answer. */
const REPEATABLE: ReadonlySet<ErrorCode> = new Set(['MODEL_NOT_READY', 'SHUTTING_DOWN', 'WORKER_LOST'])

/** A handler's statuses that would make the agent load the model and repeat the request. */
const RELOADS: ReadonlySet<number> = new Set([400, 404])
const UNPROCESSABLE = 422

/**
 * Envoy repeats no request whose response has this header, whatever its retry policy ("x-envoy-ratelimited"
 * in Envoy's documentation of its router filter).
 */
const NOT_REPEATED = ['x-envoy-ratelimited', 'true']

/** A failure as this protocol's clients get it. */
export function refusal({ requestId, req }: HttpCall, error: ServeError): Refusal {
  // With a 400, Seldon's proxy would load the model again and repeat the request; it sends this header.
  const isSeldon = error.code === 'TENSOR_MISMATCH' && req.headers['seldon-internal-model'] !== undefined
  const { headers, ...answer } = errorAnswer(
    isSeldon ? new ServeError('INVALID_TENSOR', error.message) : error,
  )
  return { ...answer, headers: [...baseHeaders(requestId, false), ...headers] }
}

/** Does not include the headers that every response has. */
export function errorAnswer(error: ServeError): Refusal & { json: string } {
  const status = statusOf(error)
  const repeats = status < 500 || isRepeatable(error)
  return {
    status,
    json: errorJson(error),
    headers: repeats ? retryHeaders(error) : [...retryHeaders(error), ...NOT_REPEATED],
  }
}

function statusOf({ code, status, begun }: ServeError): number {
  if (code === 'HANDLER_REJECTED' && status !== undefined && isFinalStatus(status))
    return RELOADS.has(status) ? UNPROCESSABLE : status
  const own = STATUSES[code] ?? 500
  return begun && (REPEATABLE.has(code) || RELOADS.has(own)) ? 500 : own
}

/** A handler that says 503 wants the request again. */
function isRepeatable({ code, status, begun }: ServeError): boolean {
  return code === 'HANDLER_REJECTED' ? status === 503 : !begun && REPEATABLE.has(code)
}

function retryHeaders({ code, retryAfter }: ServeError): string[] {
  if (retryAfter !== undefined) return ['Retry-After', retryAfter]
  return RETRY.has(code) ? ['Retry-After', '1'] : []
}

/**
 * TorchServe's exception names, for paths that both dialects have. The body has TorchServe's keys and the
 * protocol's `error`.
 */
const SHARED: Partial<Record<ErrorCode, string>> = {
  MODEL_NOT_FOUND: 'ModelNotFoundException',
  ROUTE_NOT_FOUND: 'ResourceNotFoundException',
}

function errorJson(error: ServeError): string {
  const message = errorText(error)
  const type = SHARED[error.code]
  return JSON.stringify(
    type === undefined ? { error: message } : { code: 404, type, message, error: message },
  )
}
