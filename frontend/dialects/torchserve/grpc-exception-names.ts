import type { ErrorCode } from '../../../common/errors.ts'

/** TorchServe's Java classes, which stand on the second line of a gRPC status. */
const HTTP = 'org.pytorch.serve.http'
const ARCHIVE = 'org.pytorch.serve.archive'

const BAD_REQUEST = `${HTTP}.BadRequestException`
const INTERNAL = `${HTTP}.InternalServerException`
const INVALID_KEY = `${HTTP}.InvalidKeyException`
const INVALID_MODEL = `${ARCHIVE}.model.InvalidModelException`
const METHOD_NOT_ALLOWED = `${HTTP}.MethodNotAllowedException`
const TIMEOUT = `${HTTP}.RequestTimeoutException`
const UNAVAILABLE = `${HTTP}.ServiceUnavailableException`

export const EXCEPTION_NAMES: Readonly<Record<ErrorCode, string>> = {
  INVALID_ARGUMENT: BAD_REQUEST,
  MALFORMED_BODY: BAD_REQUEST,
  INVALID_TENSOR: BAD_REQUEST,
  TENSOR_MISMATCH: BAD_REQUEST,
  UNSUPPORTED_ENCODING: BAD_REQUEST,
  PAYLOAD_TOO_LARGE: BAD_REQUEST,
  ROUTE_NOT_FOUND: `${HTTP}.ResourceNotFoundException`,
  METHOD_NOT_ALLOWED: METHOD_NOT_ALLOWED,
  UNAUTHORIZED: INVALID_KEY,
  INVALID_API_KEY: INVALID_KEY,
  FOREIGN_PAGE: BAD_REQUEST,
  API_DISABLED: METHOD_NOT_ALLOWED,
  RATE_LIMITED: `${HTTP}.TooManyRequestsException`,
  MODEL_NOT_FOUND: `${ARCHIVE}.model.ModelNotFoundException`,
  VERSION_NOT_FOUND: `${ARCHIVE}.model.ModelVersionNotFoundException`,
  MODEL_NOT_READY: UNAVAILABLE,
  MODEL_FAILED: UNAVAILABLE,
  CONFLICT: `${HTTP}.ConflictStatusException`,
  DEFAULT_VERSION: `${HTTP}.InvalidModelVersionException`,
  INVALID_MODEL: INVALID_MODEL,
  INVALID_ARCHIVE: INVALID_MODEL,
  UNTRUSTED_ARCHIVE: INVALID_MODEL,
  DOWNLOAD_FAILED: `${ARCHIVE}.DownloadArchiveException`,
  DEPENDENCIES_FAILED: `${ARCHIVE}.model.ModelException`,
  WORKFLOW_NOT_FOUND: `${ARCHIVE}.workflow.WorkflowNotFoundException`,
  INVALID_WORKFLOW: `${ARCHIVE}.workflow.InvalidWorkflowException`,
  INVALID_DAG: 'org.pytorch.serve.ensemble.InvalidDAGException',
  WORKFLOW_NOT_REGISTERED: `${ARCHIVE}.workflow.WorkflowException`,
  WORKFLOW_NODE_FAILED: INTERNAL,
  REQUEST_NOT_FOUND: `${HTTP}.ResourceNotFoundException`,
  NO_WORKER: UNAVAILABLE,
  QUEUE_FULL: UNAVAILABLE,
  NO_DEVICE: 'org.pytorch.serve.wlm.WorkerInitializationException',
  SHUTTING_DOWN: UNAVAILABLE,
  QUEUE_TIMEOUT: UNAVAILABLE,
  RESPONSE_TIMEOUT: INTERNAL,
  REQUEST_TIMEOUT: INTERNAL,
  DEADLINE_EXCEEDED: TIMEOUT,
  CLIENT_STALLED: TIMEOUT,
  CLEANUP_TIMEOUT: TIMEOUT,
  CANCELLED: INTERNAL,
  HANDLER_FAILED: INTERNAL,
  HANDLER_REJECTED: INTERNAL,
  INVALID_OUTPUT: INTERNAL,
  RESPONSE_TOO_LARGE: INTERNAL,
  SEND_OVERFLOW: INTERNAL,
  OUT_OF_MEMORY: INTERNAL,
  WORKER_LOST: INTERNAL,
  WORKER_KILLED: INTERNAL,
  WORKER_START_FAILED: INTERNAL,
  PROTOCOL: INTERNAL,
  CONFIG: INTERNAL,
  INTERNAL: INTERNAL,
}
