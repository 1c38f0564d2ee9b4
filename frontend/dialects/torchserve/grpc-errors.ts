import { status as Status } from '@grpc/grpc-js'
import type { ErrorCode, ServeError } from '../../../common/errors.ts'
import { fromHttpStatus, printable, type CallError, withRetry } from '../../edge/grpc/call-error.ts'
import type { MessageStatus } from './grpc-reply.ts'
import { answerTo } from './rest-errors.ts'

type StatusTable = Partial<Record<ErrorCode, Status>>

/**
 * gRPC status per code for inference; TorchServe's where it has one (its GRPCUtils and InferenceImpl). The
 * others are INTERNAL.
 */
const INFERENCE_STATUS: StatusTable = {
  MALFORMED_BODY: Status.INVALID_ARGUMENT,
  INVALID_TENSOR: Status.INVALID_ARGUMENT,
  TENSOR_MISMATCH: Status.INVALID_ARGUMENT,
  UNSUPPORTED_ENCODING: Status.INVALID_ARGUMENT,
  PAYLOAD_TOO_LARGE: Status.RESOURCE_EXHAUSTED,
  ROUTE_NOT_FOUND: Status.UNIMPLEMENTED,
  METHOD_NOT_ALLOWED: Status.UNIMPLEMENTED,
  UNAUTHORIZED: Status.PERMISSION_DENIED,
  INVALID_API_KEY: Status.PERMISSION_DENIED,
  FOREIGN_PAGE: Status.PERMISSION_DENIED,
  API_DISABLED: Status.PERMISSION_DENIED,
  RATE_LIMITED: Status.RESOURCE_EXHAUSTED,
  MODEL_NOT_READY: Status.UNAVAILABLE,
  MODEL_FAILED: Status.UNAVAILABLE,
  CONFLICT: Status.UNKNOWN,
  DEFAULT_VERSION: Status.UNKNOWN,
  INVALID_MODEL: Status.INVALID_ARGUMENT,
  INVALID_ARCHIVE: Status.INVALID_ARGUMENT,
  UNTRUSTED_ARCHIVE: Status.INVALID_ARGUMENT,
  DOWNLOAD_FAILED: Status.INVALID_ARGUMENT,
  DEPENDENCIES_FAILED: Status.INVALID_ARGUMENT,
  INVALID_WORKFLOW: Status.INVALID_ARGUMENT,
  INVALID_DAG: Status.INVALID_ARGUMENT,
  REQUEST_NOT_FOUND: Status.NOT_FOUND,
  QUEUE_FULL: Status.UNAVAILABLE,
  SHUTTING_DOWN: Status.UNAVAILABLE,
  QUEUE_TIMEOUT: Status.UNAVAILABLE,
  REQUEST_TIMEOUT: Status.DEADLINE_EXCEEDED,
  DEADLINE_EXCEEDED: Status.DEADLINE_EXCEEDED,
  CLIENT_STALLED: Status.DEADLINE_EXCEEDED,
  CLEANUP_TIMEOUT: Status.UNKNOWN,
  CANCELLED: Status.CANCELLED,
  HANDLER_FAILED: Status.UNAVAILABLE,
  INVALID_OUTPUT: Status.UNAVAILABLE,
  RESPONSE_TOO_LARGE: Status.RESOURCE_EXHAUSTED,
  SEND_OVERFLOW: Status.RESOURCE_EXHAUSTED,
  WORKER_KILLED: Status.RESOURCE_EXHAUSTED,
}

/** Where management differs. */
const MANAGEMENT_STATUS: StatusTable = {
  ...INFERENCE_STATUS,
  INVALID_ARGUMENT: Status.INVALID_ARGUMENT,
  MODEL_NOT_FOUND: Status.NOT_FOUND,
  VERSION_NOT_FOUND: Status.NOT_FOUND,
}

/** Classes that differ from those over REST. */
const CLASSES: Partial<Record<ErrorCode, string>> = {
  MALFORMED_BODY: 'BadRequestException',
  PAYLOAD_TOO_LARGE: 'BadRequestException',
  FOREIGN_PAGE: 'BadRequestException',
  CANCELLED: 'InternalServerException',
}

/** Packages in org.pytorch.serve of the classes that are not in its package http. */
const PACKAGES: ReadonlyMap<string, string> = new Map([
  ['InvalidModelException', 'archive.model'],
  ['ModelException', 'archive.model'],
  ['ModelNotFoundException', 'archive.model'],
  ['ModelVersionNotFoundException', 'archive.model'],
  ['DownloadArchiveException', 'archive'],
  ['InvalidWorkflowException', 'archive.workflow'],
  ['WorkflowException', 'archive.workflow'],
  ['WorkflowNotFoundException', 'archive.workflow'],
  ['InvalidDAGException', 'ensemble'],
  ['WorkerInitializationException', 'wlm'],
])

/** TorchServe's Java class, which stands on the second line of a gRPC status. */
function className(code: ErrorCode): string {
  const name = CLASSES[code] ?? answerTo(code).type
  return `org.pytorch.serve.${PACKAGES.get(name) ?? 'http'}.${name}`
}

/** What TorchServe writes on inference instead of the class, where it does not write the class. */
const INFERENCE_CLASSES: Partial<Record<ErrorCode, string>> = {
  INVALID_ARGUMENT: 'BadRequestException.()',
  NO_WORKER: 'InternalServerException.()',
  QUEUE_FULL: 'InternalServerException.()',
}

/** Codes whose message stands alone. */
const WITHOUT_CLASS: ReadonlySet<ErrorCode> = new Set([
  'UNAUTHORIZED',
  'RATE_LIMITED',
  'API_DISABLED',
  'DEADLINE_EXCEEDED',
  'CANCELLED',
])

export function inferenceError(error: ServeError): CallError {
  const details = describe(error, INFERENCE_CLASSES[error.code] ?? className(error.code))
  return withRetry({ code: inferenceStatus(error), details }, error)
}

function inferenceStatus(error: ServeError): Status {
  return error.code === 'HANDLER_REJECTED'
    ? fromHttpStatus(error.status ?? 500)
    : (INFERENCE_STATUS[error.code] ?? Status.INTERNAL)
}

/** The same as an error message of StreamPredictions2. */
export function sequenceError(error: ServeError): MessageStatus {
  const reason = INFERENCE_CLASSES[error.code] ?? className(error.code)
  return { code: inferenceStatus(error), message: printable(error.message), reason }
}

export function managementError(error: ServeError): CallError {
  const code = MANAGEMENT_STATUS[error.code] ?? Status.INTERNAL
  return { code, details: describe(error, className(error.code)) }
}

function describe(error: ServeError, reason: string): string {
  const message = printable(error.message)
  return WITHOUT_CLASS.has(error.code) ? message : `${message}\n${reason}`
}
