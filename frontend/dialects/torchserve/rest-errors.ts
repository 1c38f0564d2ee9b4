import type { ErrorCode, ServeError } from '../../../common/errors.ts'

/** How REST says an error: the status, and the Java class name that stands in the JSON as `type`. */
interface ErrorAnswer {
  readonly status: number
  readonly type: string
}

const answer = (status: number, type: string): ErrorAnswer => ({ status, type })
const server = (status: number): ErrorAnswer => answer(status, 'InternalServerException')
const unavailable = answer(503, 'ServiceUnavailableException')
const notAllowed = answer(405, 'MethodNotAllowedException')

/** Statuses and types as TorchServe has them (spec 1.2, 1.3); codes that it does not know get the nearest. */
const ANSWERS: Readonly<Record<ErrorCode, ErrorAnswer>> = {
  INVALID_ARGUMENT: answer(400, 'BadRequestException'),
  MALFORMED_BODY: answer(500, 'ErrorDataDecoderException'),
  INVALID_TENSOR: answer(400, 'BadRequestException'),
  UNSUPPORTED_ENCODING: answer(415, 'BadRequestException'),
  PAYLOAD_TOO_LARGE: answer(413, ''),
  ROUTE_NOT_FOUND: answer(404, 'ResourceNotFoundException'),
  METHOD_NOT_ALLOWED: notAllowed,
  UNAUTHORIZED: answer(400, 'InvalidKeyException'),
  INVALID_API_KEY: answer(400, 'InvalidKeyException'),
  API_DISABLED: notAllowed,
  MODEL_NOT_FOUND: answer(404, 'ModelNotFoundException'),
  VERSION_NOT_FOUND: answer(404, 'ModelVersionNotFoundException'),
  MODEL_NOT_READY: unavailable,
  CONFLICT: answer(409, 'ConflictStatusException'),
  DEFAULT_VERSION: answer(403, 'InvalidModelVersionException'),
  INVALID_MODEL: answer(400, 'InvalidModelException'),
  INVALID_ARCHIVE: answer(400, 'InvalidModelException'),
  DOWNLOAD_FAILED: answer(400, 'DownloadArchiveException'),
  DEPENDENCIES_FAILED: answer(400, 'ModelException'),
  WORKFLOW_NOT_FOUND: answer(404, 'WorkflowNotFoundException'),
  INVALID_WORKFLOW: answer(400, 'InvalidWorkflowException'),
  INVALID_DAG: answer(400, 'InvalidDAGException'),
  WORKFLOW_NOT_REGISTERED: answer(500, 'WorkflowException'),
  WORKFLOW_NODE_FAILED: server(500),
  NO_WORKER: unavailable,
  QUEUE_FULL: unavailable,
  NO_DEVICE: answer(500, 'WorkerInitializationException'),
  SHUTTING_DOWN: unavailable,
  QUEUE_TIMEOUT: unavailable,
  RESPONSE_TIMEOUT: server(500),
  REQUEST_TIMEOUT: server(500),
  DEADLINE_EXCEEDED: answer(408, 'RequestTimeoutException'),
  CLEANUP_TIMEOUT: answer(408, 'RequestTimeoutException'),
  CANCELLED: unavailable,
  HANDLER_FAILED: server(503),
  HANDLER_REJECTED: server(500),
  INVALID_OUTPUT: server(503),
  RESPONSE_TOO_LARGE: server(500),
  SEND_OVERFLOW: server(503),
  OUT_OF_MEMORY: server(507),
  WORKER_LOST: server(500),
  WORKER_START_FAILED: server(500),
  PROTOCOL: server(500),
  CONFIG: server(500),
  INTERNAL: server(500),
}

export function errorAnswer(error: ServeError): ErrorAnswer {
  if (error.code === 'HANDLER_REJECTED') return server(rejectedStatus(error.status))
  if (error.code === 'MALFORMED_BODY' && error.cause instanceof SyntaxError)
    return answer(500, 'JsonSyntaxException')
  return ANSWERS[error.code]
}

/** The status that a handler chose for its error. 413 belongs to the request body alone, so it becomes 507, as in TorchServe. */
function rejectedStatus(status: number | undefined): number {
  if (status === undefined || !isFinalStatus(status)) return 500
  return status === 413 ? 507 : status
}

/** Whether HTTP can end a response with this status; 1xx would not end it. */
export function isFinalStatus(status: number): boolean {
  return Number.isInteger(status) && status >= 200 && status <= 599
}

/** TorchServe's JSON: two spaces, fields that are undefined left out, a newline at the end. */
export function prettyJson(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`
}

export function errorBody(status: number, type: string, message: string): string {
  return prettyJson({ code: status, type, message: message === '' ? undefined : message })
}
