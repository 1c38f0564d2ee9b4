import { randomUUID } from 'node:crypto'
import { STATUS_CODES } from 'node:http'
import type { ErrorCode, ServeError } from '../../../common/errors.ts'
import type { BareAnswer } from '../../edge/http/bare-answer.ts'
import { isFinalStatus, type Refusal } from '../../edge/http/http-reply.ts'
import type { HttpCall } from '../../edge/http/http-call.ts'
import type { ListenerErrors } from '../../edge/http/app.ts'
import type { RestDialect } from '../rest-dialect.ts'
import { commonHeaders, prettyJson } from './rest-reply.ts'

/** An error over REST: the status, and the Java class name that the JSON contains as `type`. */
interface ErrorAnswer {
  readonly status: number
  readonly type: string
}

const answer = (status: number, type: string): ErrorAnswer => ({ status, type })
const server = (status: number): ErrorAnswer => answer(status, 'InternalServerException')
const unavailable = answer(503, 'ServiceUnavailableException')
const notAllowed = answer(405, 'MethodNotAllowedException')

/**
 * Statuses and types as in TorchServe (frontend/server/src/main/java/org/pytorch/serve/http/*Exception.java
 * and HttpRequestHandler.java). Codes that TorchServe lacks use the closest ones; those
 * that are not listed are 500.
 */
const ANSWERS: Partial<Record<ErrorCode, ErrorAnswer>> = {
  INVALID_ARGUMENT: answer(400, 'BadRequestException'),
  MALFORMED_BODY: answer(400, 'ErrorDataDecoderException'),
  INVALID_TENSOR: answer(400, 'BadRequestException'),
  TENSOR_MISMATCH: answer(400, 'BadRequestException'),
  UNSUPPORTED_ENCODING: answer(415, 'BadRequestException'),
  PAYLOAD_TOO_LARGE: answer(413, 'RequestEntityTooLargeException'),
  ROUTE_NOT_FOUND: answer(404, 'ResourceNotFoundException'),
  METHOD_NOT_ALLOWED: notAllowed,
  UNAUTHORIZED: answer(400, 'InvalidKeyException'),
  INVALID_API_KEY: answer(400, 'InvalidKeyException'),
  FOREIGN_PAGE: answer(403, 'ForbiddenException'),
  API_DISABLED: notAllowed,
  RATE_LIMITED: answer(429, 'TooManyRequestsException'),
  MODEL_NOT_FOUND: answer(404, 'ModelNotFoundException'),
  VERSION_NOT_FOUND: answer(404, 'ModelVersionNotFoundException'),
  MODEL_NOT_READY: unavailable,
  MODEL_FAILED: unavailable,
  CONFLICT: answer(409, 'ConflictStatusException'),
  DEFAULT_VERSION: answer(403, 'InvalidModelVersionException'),
  INVALID_MODEL: answer(400, 'InvalidModelException'),
  INVALID_ARCHIVE: answer(400, 'InvalidModelException'),
  UNTRUSTED_ARCHIVE: answer(400, 'InvalidModelException'),
  DOWNLOAD_FAILED: answer(400, 'DownloadArchiveException'),
  DEPENDENCIES_FAILED: answer(400, 'ModelException'),
  WORKFLOW_NOT_FOUND: answer(404, 'WorkflowNotFoundException'),
  INVALID_WORKFLOW: answer(400, 'InvalidWorkflowException'),
  INVALID_DAG: answer(400, 'InvalidDAGException'),
  WORKFLOW_NOT_REGISTERED: answer(500, 'WorkflowException'),
  REQUEST_NOT_FOUND: answer(404, 'ResourceNotFoundException'),
  NO_WORKER: unavailable,
  QUEUE_FULL: unavailable,
  NO_DEVICE: answer(500, 'WorkerInitializationException'),
  SHUTTING_DOWN: unavailable,
  QUEUE_TIMEOUT: unavailable,
  DEADLINE_EXCEEDED: answer(408, 'RequestTimeoutException'),
  CLIENT_STALLED: answer(408, 'RequestTimeoutException'),
  CLEANUP_TIMEOUT: answer(408, 'RequestTimeoutException'),
  CANCELLED: unavailable,
  HANDLER_FAILED: server(503),
  INVALID_OUTPUT: server(503),
  SEND_OVERFLOW: server(503),
  OUT_OF_MEMORY: server(507),
  WORKER_KILLED: server(507),
}

export function errorAnswer(error: ServeError): ErrorAnswer {
  if (error.code === 'HANDLER_REJECTED') return server(rejectedStatus(error.status))
  if (error.code === 'MALFORMED_BODY' && error.cause instanceof SyntaxError)
    return answer(500, 'JsonSyntaxException')
  return answerTo(error.code)
}

/** The answer to a code, whatever its cause. */
export function answerTo(code: ErrorCode): ErrorAnswer {
  return ANSWERS[code] ?? server(500)
}

/**
 * The status for an error that a handler chose. 413 is reserved for the request body, so it becomes 507, as
 * in TorchServe.
 */
function rejectedStatus(status: number | undefined): number {
  if (status === undefined || !isFinalStatus(status)) return 500
  return status === 413 ? 507 : status
}

/** Where the phrases of TorchServe, which are those of Netty's HttpResponseStatus, differ from Node's. */
const PHRASES: Readonly<Record<number, string>> = {
  413: 'Request Entity Too Large',
  414: 'Request-URI Too Long',
  416: 'Requested Range Not Satisfiable',
  425: 'Unordered Collection',
}
/** Netty has no phrase for these and sends the phrase of their class. */
const UNNAMED: ReadonlySet<number> = new Set([208, 226, 418, 451, 508, 509])
const CLASSES = ['', '', 'Success', 'Redirection', 'Client Error', 'Server Error']

/** The reason phrase of an error's status. */
function phraseOf(status: number): string {
  const named = PHRASES[status] ?? (UNNAMED.has(status) ? undefined : STATUS_CODES[status])
  return named ?? `${CLASSES[Math.floor(status / 100)]!} (${status})`
}

/**
 * TorchServe's errors for requests of no dialect. A path in the area of a dialect gets that dialect's 404.
 */
export function listenerErrors(dialects: readonly RestDialect[]): ListenerErrors {
  return {
    refusal: (call, error) => refusal(call, error, dialects),
    malformed: (late) =>
      late
        ? bare(408, errorBody(408, 'RequestTimeoutException', 'The request took too long to arrive.'))
        : bare(400, errorBody(400, 'BadRequestException', 'Invalid HTTP message.')),
    tooManyConnections: () => bare(503, TOO_MANY_CONNECTIONS),
    httpsOnly: () =>
      bare(403, prettyJson({ status: 'This TorchServe instance only accepts HTTPS requests' })),
  }
}

const ROOT_HINT = 'GET /api-description has the API of this port; a browser gets a page here'

const CAUSE_HINT = 'the log of the server has the cause'

const TOO_MANY_CONNECTIONS = errorBody(503, unavailable.type, 'The server has too many connections.')

function refusal(call: HttpCall, error: ServeError, dialects: readonly RestDialect[]): Refusal {
  const { status, type } = errorAnswer(error)
  const json = notFound(call, error, dialects) ?? errorBody(status, type, error.message)
  const headers = commonHeaders(call.requestId, false)
  if (error.retryAfter !== undefined) headers.push('Retry-After', error.retryAfter)
  // TorchServe's tests compare the whole body.
  if (error.code === 'DOWNLOAD_FAILED' && error.detail !== undefined) headers.push('x-hint', CAUSE_HINT)
  if (error.code === 'METHOD_NOT_ALLOWED' && call.target.segments.length === 0)
    headers.push('x-hint', ROOT_HINT)
  return { status, reason: phraseOf(status), headers, json }
}

function notFound(call: HttpCall, error: ServeError, dialects: readonly RestDialect[]): string | undefined {
  if (error.code !== 'ROUTE_NOT_FOUND') return undefined
  for (const dialect of dialects) {
    const json = dialect.notFound?.(call, error)
    if (json !== undefined) return json
  }
  return undefined
}

function bare(status: number, body: string): BareAnswer {
  const headers = [...commonHeaders(randomUUID(), false), 'content-type', 'application/json']
  return { status, headers, body }
}

function errorBody(status: number, type: string, message: string): string {
  return prettyJson({ code: status, type, message: message === '' ? undefined : message })
}
