/**
 * The one error type of the product. Every failure that a client can see is a ServeError with a code from the
 * closed list below; each protocol dialect has one table from code to its own statuses.
 */

/** What went wrong. Tests and callers match these codes, never the prose of a message. */
export const ERROR_CODES = [
  // the request
  'INVALID_ARGUMENT', // a parameter, body or header is missing or malformed
  'MALFORMED_BODY', // multipart or JSON that cannot be parsed
  'INVALID_TENSOR', // a request of the Open Inference Protocol can be read, but its tensors do not fit
  'UNSUPPORTED_ENCODING', // the body is compressed in a way that is not known here
  'PAYLOAD_TOO_LARGE', // the request is larger than max_request_size
  'ROUTE_NOT_FOUND',
  'METHOD_NOT_ALLOWED',
  'UNAUTHORIZED', // token missing, wrong or expired
  'INVALID_API_KEY', // the /token route was called with a wrong key or type
  'API_DISABLED', // the model API is off (enable_model_api)
  // models
  'MODEL_NOT_FOUND',
  'VERSION_NOT_FOUND',
  'MODEL_NOT_READY', // none of its workers has loaded it yet
  'CONFLICT', // name and version are registered already
  'DEFAULT_VERSION', // the default version cannot be removed while others exist
  'INVALID_MODEL', // the manifest or the model-config cannot be used
  'INVALID_ARCHIVE', // the archive is broken, unsafe or over its limits
  'DOWNLOAD_FAILED',
  'DEPENDENCIES_FAILED', // the Python packages of a model could not be installed
  // workflows
  'WORKFLOW_NOT_FOUND',
  'INVALID_WORKFLOW', // the manifest or the specification cannot be used
  'INVALID_DAG', // the graph has a cycle, or not exactly one start
  'WORKFLOW_NOT_REGISTERED', // a node could not be registered; all others were unregistered again
  'WORKFLOW_NODE_FAILED', // a node failed, as often as it was tried
  // capacity
  'NO_WORKER', // no worker is wanted for this model
  'QUEUE_FULL',
  'NO_DEVICE', // too few GPUs for one worker of a rank group
  'SHUTTING_DOWN',
  // time
  'QUEUE_TIMEOUT', // waited too long for a worker
  'RESPONSE_TIMEOUT', // no first response, or too long a gap between two
  'REQUEST_TIMEOUT', // the whole request took too long
  'DEADLINE_EXCEEDED', // the client's own deadline passed
  'CLEANUP_TIMEOUT', // workers did not end in time
  'CANCELLED', // the client left, or the request was cancelled
  // the worker and its handler
  'HANDLER_FAILED', // the handler threw
  'HANDLER_REJECTED', // the handler answered with an error of its own (PredictionException), see `status`
  'INVALID_OUTPUT', // the handler's result does not fit the batch or cannot be encoded
  'RESPONSE_TOO_LARGE', // an item is larger than max_response_size
  'SEND_OVERFLOW', // the handler sent more than the reader took, without waiting
  'OUT_OF_MEMORY',
  'WORKER_LOST', // the worker died while it had this request
  'WORKER_START_FAILED', // the worker did not start, or its handler did not load
  // ourselves
  'PROTOCOL', // the peer on the worker socket broke the protocol
  'CONFIG', // the configuration cannot be used
  'INTERNAL',
] as const

export type ErrorCode = (typeof ERROR_CODES)[number]

/** A ServeError as it crosses the worker socket: data, never an object with behaviour. */
export interface WireError {
  code: ErrorCode
  message: string
  /** HTTP status that the handler chose (HANDLER_REJECTED only). */
  status?: number
  /** What went wrong in a word, for programs, and which parameter was at fault: as the handler says it (HANDLER_REJECTED only). */
  reason?: string
  param?: string
  /** Stack or stderr text for the log; never sent to clients. */
  detail?: string
}

export interface ServeErrorOptions {
  status?: number
  reason?: string
  param?: string
  detail?: string
  cause?: unknown
}

export class ServeError extends Error {
  override readonly name = 'ServeError'
  readonly code: ErrorCode
  readonly status: number | undefined
  readonly reason: string | undefined
  readonly param: string | undefined
  readonly detail: string | undefined

  constructor(code: ErrorCode, message: string, options: ServeErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.status = options.status
    this.reason = options.reason
    this.param = options.param
    this.detail = options.detail
  }

  toWire(): WireError {
    const { code, message, status, reason, param, detail } = this
    return { code, message, status, reason, param, detail }
  }

  /** Rebuilds an error that came from the other process; an unknown code becomes INTERNAL. */
  static fromWire(wire: WireError): ServeError {
    const known = (ERROR_CODES as readonly string[]).includes(wire.code)
    return new ServeError(known ? wire.code : 'INTERNAL', wire.message, {
      status: wire.status,
      reason: wire.reason,
      param: wire.param,
      detail: wire.detail,
    })
  }

  /** Any thrown value as a ServeError; what is not one already becomes INTERNAL with its stack as detail. */
  static from(thrown: unknown): ServeError {
    if (thrown instanceof ServeError) return thrown
    const detail = thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown)
    return new ServeError('INTERNAL', 'Internal server error', { detail, cause: thrown })
  }
}
