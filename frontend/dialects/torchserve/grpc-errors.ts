import { status as Status } from '@grpc/grpc-js'
import type { ErrorCode, ServeError } from '../../../common/errors.ts'
import { fromHttpStatus, printable, type CallError, withRetry } from '../../edge/grpc/call-error.ts'
import { EXCEPTION_NAMES } from './grpc-exception-names.ts'
import type { MessageStatus } from './grpc-response.ts'

type StatusTable = Readonly<Record<ErrorCode, Status>>

/** gRPC status per code for inference; TorchServe's where it has one (its GRPCUtils and InferenceImpl). */
const INFERENCE_STATUS: StatusTable = {
  INVALID_ARGUMENT: Status.INTERNAL,
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
  MODEL_NOT_FOUND: Status.INTERNAL,
  VERSION_NOT_FOUND: Status.INTERNAL,
  MODEL_NOT_READY: Status.UNAVAILABLE,
  MODEL_FAILED: Status.UNAVAILABLE,
  CONFLICT: Status.UNKNOWN,
  DEFAULT_VERSION: Status.UNKNOWN,
  INVALID_MODEL: Status.INVALID_ARGUMENT,
  INVALID_ARCHIVE: Status.INVALID_ARGUMENT,
  UNTRUSTED_ARCHIVE: Status.INVALID_ARGUMENT,
  DOWNLOAD_FAILED: Status.INVALID_ARGUMENT,
  DEPENDENCIES_FAILED: Status.INVALID_ARGUMENT,
  WORKFLOW_NOT_FOUND: Status.INTERNAL,
  INVALID_WORKFLOW: Status.INVALID_ARGUMENT,
  INVALID_DAG: Status.INVALID_ARGUMENT,
  WORKFLOW_NOT_REGISTERED: Status.INTERNAL,
  WORKFLOW_NODE_FAILED: Status.INTERNAL,
  REQUEST_NOT_FOUND: Status.NOT_FOUND,
  NO_WORKER: Status.INTERNAL,
  QUEUE_FULL: Status.UNAVAILABLE,
  NO_DEVICE: Status.INTERNAL,
  SHUTTING_DOWN: Status.UNAVAILABLE,
  QUEUE_TIMEOUT: Status.UNAVAILABLE,
  RESPONSE_TIMEOUT: Status.INTERNAL,
  REQUEST_TIMEOUT: Status.DEADLINE_EXCEEDED,
  DEADLINE_EXCEEDED: Status.DEADLINE_EXCEEDED,
  CLIENT_STALLED: Status.DEADLINE_EXCEEDED,
  CLEANUP_TIMEOUT: Status.UNKNOWN,
  CANCELLED: Status.CANCELLED,
  HANDLER_FAILED: Status.UNAVAILABLE,
  HANDLER_REJECTED: Status.INTERNAL,
  INVALID_OUTPUT: Status.UNAVAILABLE,
  RESPONSE_TOO_LARGE: Status.RESOURCE_EXHAUSTED,
  SEND_OVERFLOW: Status.RESOURCE_EXHAUSTED,
  OUT_OF_MEMORY: Status.INTERNAL,
  WORKER_LOST: Status.INTERNAL,
  WORKER_KILLED: Status.RESOURCE_EXHAUSTED,
  WORKER_START_FAILED: Status.INTERNAL,
  PROTOCOL: Status.INTERNAL,
  CONFIG: Status.INTERNAL,
  INTERNAL: Status.INTERNAL,
}

/** Where management differs. */
const MANAGEMENT_STATUS: StatusTable = {
  ...INFERENCE_STATUS,
  INVALID_ARGUMENT: Status.INVALID_ARGUMENT,
  MODEL_NOT_FOUND: Status.NOT_FOUND,
  VERSION_NOT_FOUND: Status.NOT_FOUND,
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
  const details = describe(error, INFERENCE_CLASSES[error.code] ?? EXCEPTION_NAMES[error.code])
  return withRetry({ code: inferenceStatus(error), details }, error)
}

function inferenceStatus(error: ServeError): Status {
  return error.code === 'HANDLER_REJECTED'
    ? fromHttpStatus(error.status ?? 500)
    : INFERENCE_STATUS[error.code]
}

/** The same as an error message of StreamPredictions2. */
export function sequenceError(error: ServeError): MessageStatus {
  const reason = INFERENCE_CLASSES[error.code] ?? EXCEPTION_NAMES[error.code]
  return { code: inferenceStatus(error), message: printable(error.message), reason }
}

export function managementError(error: ServeError): CallError {
  return { code: MANAGEMENT_STATUS[error.code], details: describe(error, EXCEPTION_NAMES[error.code]) }
}

function describe(error: ServeError, className: string): string {
  const message = printable(error.message)
  return WITHOUT_CLASS.has(error.code) ? message : `${message}\n${className}`
}
