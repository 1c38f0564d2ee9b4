import type { ErrorCode, ServeError } from '../../../common/errors.ts'
import { isFinalStatus, type Refusal } from '../../edge/http/http-reply.ts'

/**
 * The HTTP status of each code. 400 means only a malformed body, because Seldon's proxy repeats a request
 * after a 400.
 */
const STATUSES: Readonly<Record<ErrorCode, number>> = {
  INVALID_ARGUMENT: 400,
  MALFORMED_BODY: 400,
  INVALID_TENSOR: 422,
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
  DEPENDENCIES_FAILED: 500,
  WORKFLOW_NOT_FOUND: 404,
  INVALID_WORKFLOW: 422,
  INVALID_DAG: 422,
  WORKFLOW_NOT_REGISTERED: 500,
  WORKFLOW_NODE_FAILED: 500,
  NO_WORKER: 503,
  QUEUE_FULL: 503,
  NO_DEVICE: 500,
  SHUTTING_DOWN: 503,
  QUEUE_TIMEOUT: 503,
  RESPONSE_TIMEOUT: 504,
  REQUEST_TIMEOUT: 504,
  DEADLINE_EXCEEDED: 504,
  CLEANUP_TIMEOUT: 500,
  CANCELLED: 503,
  HANDLER_FAILED: 500,
  HANDLER_REJECTED: 500,
  INVALID_OUTPUT: 500,
  RESPONSE_TOO_LARGE: 500,
  SEND_OVERFLOW: 500,
  OUT_OF_MEMORY: 507,
  WORKER_LOST: 500,
  WORKER_START_FAILED: 500,
  PROTOCOL: 500,
  CONFIG: 500,
  INTERNAL: 500,
}

/** Codes after which a repeated request may succeed. */
const RETRY: ReadonlySet<ErrorCode> = new Set(['QUEUE_FULL', 'MODEL_NOT_READY', 'QUEUE_TIMEOUT'])

/** Does not include the headers that every response has. */
export function errorAnswer(error: ServeError): Refusal & { json: string } {
  const chosen =
    error.code === 'HANDLER_REJECTED' && error.status !== undefined && isFinalStatus(error.status)
  return {
    status: chosen ? error.status : STATUSES[error.code],
    json: errorJson(error),
    headers: retryHeaders(error),
  }
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

function errorJson({ code, message }: ServeError): string {
  const type = SHARED[code]
  return JSON.stringify(
    type === undefined ? { error: message } : { code: 404, type, message, error: message },
  )
}
