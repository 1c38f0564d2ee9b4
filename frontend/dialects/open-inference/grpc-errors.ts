import { status as Status } from '@grpc/grpc-js'
import type { ErrorCode, ServeError } from '../../../common/errors.ts'
import { type CallError, fromHttpStatus, printable } from '../../edge/grpc/call-error.ts'

/** gRPC status of each code: NOT_FOUND and UNAVAILABLE are what Seldon Core's agent looks for. */
const STATUSES: Readonly<Record<ErrorCode, Status>> = {
  INVALID_ARGUMENT: Status.INVALID_ARGUMENT,
  MALFORMED_BODY: Status.INVALID_ARGUMENT,
  INVALID_TENSOR: Status.INVALID_ARGUMENT,
  UNSUPPORTED_ENCODING: Status.INVALID_ARGUMENT,
  PAYLOAD_TOO_LARGE: Status.RESOURCE_EXHAUSTED,
  ROUTE_NOT_FOUND: Status.UNIMPLEMENTED,
  METHOD_NOT_ALLOWED: Status.UNIMPLEMENTED,
  UNAUTHORIZED: Status.UNAUTHENTICATED,
  INVALID_API_KEY: Status.UNAUTHENTICATED,
  API_DISABLED: Status.PERMISSION_DENIED,
  MODEL_NOT_FOUND: Status.NOT_FOUND,
  VERSION_NOT_FOUND: Status.NOT_FOUND,
  MODEL_NOT_READY: Status.UNAVAILABLE,
  CONFLICT: Status.ALREADY_EXISTS,
  DEFAULT_VERSION: Status.FAILED_PRECONDITION,
  INVALID_MODEL: Status.INVALID_ARGUMENT,
  INVALID_ARCHIVE: Status.INVALID_ARGUMENT,
  DOWNLOAD_FAILED: Status.INVALID_ARGUMENT,
  DEPENDENCIES_FAILED: Status.INTERNAL,
  WORKFLOW_NOT_FOUND: Status.NOT_FOUND,
  INVALID_WORKFLOW: Status.INVALID_ARGUMENT,
  INVALID_DAG: Status.INVALID_ARGUMENT,
  WORKFLOW_NOT_REGISTERED: Status.INTERNAL,
  WORKFLOW_NODE_FAILED: Status.INTERNAL,
  NO_WORKER: Status.UNAVAILABLE,
  QUEUE_FULL: Status.UNAVAILABLE,
  NO_DEVICE: Status.INTERNAL,
  SHUTTING_DOWN: Status.UNAVAILABLE,
  QUEUE_TIMEOUT: Status.UNAVAILABLE,
  RESPONSE_TIMEOUT: Status.DEADLINE_EXCEEDED,
  REQUEST_TIMEOUT: Status.DEADLINE_EXCEEDED,
  DEADLINE_EXCEEDED: Status.DEADLINE_EXCEEDED,
  CLEANUP_TIMEOUT: Status.INTERNAL,
  CANCELLED: Status.CANCELLED,
  HANDLER_FAILED: Status.INTERNAL,
  HANDLER_REJECTED: Status.INTERNAL,
  INVALID_OUTPUT: Status.INTERNAL,
  RESPONSE_TOO_LARGE: Status.RESOURCE_EXHAUSTED,
  SEND_OVERFLOW: Status.RESOURCE_EXHAUSTED,
  OUT_OF_MEMORY: Status.RESOURCE_EXHAUSTED,
  WORKER_LOST: Status.INTERNAL,
  WORKER_START_FAILED: Status.INTERNAL,
  PROTOCOL: Status.INTERNAL,
  CONFIG: Status.INTERNAL,
  INTERNAL: Status.INTERNAL,
}

/** A status that a handler chose as for HTTP; 422 is an invalid argument here. */
function rejected(status = 500): Status {
  return status === 422 ? Status.INVALID_ARGUMENT : fromHttpStatus(status)
}

export function callError(error: ServeError): CallError {
  const code = error.code === 'HANDLER_REJECTED' ? rejected(error.status) : STATUSES[error.code]
  return { code, details: printable(error.message) }
}
