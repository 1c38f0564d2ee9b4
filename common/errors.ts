/**
 * The one error type of the product. Every failure that a client can see is a ServeError with a code from the
 * closed list below. Each dialect has one table that maps codes to its own statuses.
 */

/** What went wrong. Tests and callers match these codes, never the text of a message. */
export const ERROR_CODES = [
  // the request
  'INVALID_ARGUMENT', // a parameter, body or header is missing or malformed
  'MALFORMED_BODY', // multipart or JSON that cannot be parsed
  'INVALID_TENSOR', // an Open Inference Protocol request whose tensors are not valid
  'TENSOR_MISMATCH', // its tensors are valid, but not those that the model declares
  'UNSUPPORTED_ENCODING', // the Content-Encoding of the body is not supported
  'PAYLOAD_TOO_LARGE', // the request is larger than max_request_size
  'ROUTE_NOT_FOUND',
  'METHOD_NOT_ALLOWED',
  'UNAUTHORIZED', // token missing, wrong or expired
  'INVALID_API_KEY', // the /token route was called with a wrong key or type
  'FOREIGN_PAGE', // a web page of another site sent the request, or it names a strange host
  'API_DISABLED', // the model API is disabled (enable_model_api)
  'RATE_LIMITED', // the key or the address has used up a limit, see `retryAfterMs`
  // models
  'MODEL_NOT_FOUND',
  'VERSION_NOT_FOUND',
  'MODEL_NOT_READY', // no worker has loaded the model yet
  'MODEL_FAILED', // no worker can load the model, see models/model-errors.ts in the frontend
  'CONFLICT', // name and version are already registered
  'DEFAULT_VERSION', // the default version cannot be removed while other versions exist
  'INVALID_MODEL', // the manifest or the model-config is not valid
  'INVALID_ARCHIVE', // the archive is broken, unsafe or exceeds a limit
  'UNTRUSTED_ARCHIVE', // the archive has not the pinned hash
  'DOWNLOAD_FAILED',
  'DEPENDENCIES_FAILED', // the Python packages of a model could not be installed
  // workflows
  'WORKFLOW_NOT_FOUND',
  'INVALID_WORKFLOW', // the manifest or the specification is not valid
  'INVALID_DAG', // the graph has a cycle, or not exactly one start node
  'WORKFLOW_NOT_REGISTERED', // a node could not be registered; the others were unregistered again
  'WORKFLOW_NODE_FAILED', // a node failed in all its attempts
  // open requests
  'REQUEST_NOT_FOUND', // an operator named a request that is not open
  // capacity
  'NO_WORKER', // the model has no workers and wants none
  'QUEUE_FULL',
  'NO_DEVICE', // too few GPUs for one worker of a rank group
  'SHUTTING_DOWN',
  // time
  'QUEUE_TIMEOUT', // no worker took the request in time
  'RESPONSE_TIMEOUT', // no first response, or too long a gap between two items
  'REQUEST_TIMEOUT', // the whole request took longer than its limit
  'DEADLINE_EXCEEDED', // the client's own deadline passed
  'CLIENT_STALLED', // the client did not read its answer, or send its next input, within a time limit
  'CLEANUP_TIMEOUT', // workers did not end in time
  'CANCELLED', // the client disconnected, or the request was cancelled
  // the worker and its handler
  'HANDLER_FAILED', // the handler threw
  'HANDLER_REJECTED', // the handler chose an error (PredictionException), see `status`
  'INVALID_OUTPUT', // the handler's result does not fit the batch or cannot be encoded
  'RESPONSE_TOO_LARGE', // an item is larger than max_response_size
  'SEND_OVERFLOW', // the handler sent more than the window allows, without awaiting
  'OUT_OF_MEMORY',
  'WORKER_LOST', // the worker died while it worked on this request
  'WORKER_KILLED', // the same with exit status 137, as after SIGKILL for lack of memory
  'WORKER_START_FAILED', // the worker did not start, or its handler did not load
  // the server itself
  'PROTOCOL', // the peer on the worker socket violated the protocol
  'CONFIG', // the configuration is not valid
  'INTERNAL',
] as const

export type ErrorCode = (typeof ERROR_CODES)[number]

/** A ServeError as it crosses the worker socket: plain data. */
export interface WireError {
  code: ErrorCode
  message: string
  /** HTTP status that the handler chose (HANDLER_REJECTED only). */
  status?: number
  /** An error code for programs, and the parameter at fault. Set by the handler (HANDLER_REJECTED only). */
  reason?: string
  param?: string
  /** Stack or stderr text for the log; never sent to clients. */
  detail?: string
  /** What a handler's own exception says (HANDLER_FAILED only), for dialects whose clients expect it. */
  said?: string
  /** See ServeErrorOptions. */
  absent?: string
  retryAfterMs?: number
}

export interface ServeErrorOptions {
  status?: number
  reason?: string
  param?: string
  detail?: string
  said?: string
  /**
   * The name of what is not there: the model that was asked for (MODEL_NOT_FOUND), or a package that the
   * handler imports (WORKER_START_FAILED).
   */
  absent?: string
  /** Whether the detail is what a process printed, so that the log has it. Not sent over the socket. */
  isPrinted?: boolean
  /** Milliseconds after which the same request may succeed. */
  retryAfterMs?: number
  /** What strangers may read of it: no names, no paths. Not sent over the worker socket. */
  publicCause?: string
  /** See the property. Not sent over the worker socket. */
  begun?: boolean
  cause?: unknown
}

export class ServeError extends Error {
  override readonly name = 'ServeError'
  readonly code: ErrorCode
  readonly status: number | undefined
  readonly reason: string | undefined
  readonly param: string | undefined
  readonly detail: string | undefined
  readonly said: string | undefined
  readonly absent: string | undefined
  readonly isPrinted: boolean
  readonly retryAfterMs: number | undefined
  readonly publicCause: string | undefined
  /**
   * Whether the handler may have begun the request, so that nobody should repeat it unasked. False too where
   * the model says that repeating does no harm (`idempotent`).
   */
  readonly begun: boolean

  constructor(code: ErrorCode, message: string, options: ServeErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.status = options.status
    this.reason = options.reason
    this.param = options.param
    this.detail = options.detail
    this.said = options.said
    this.absent = options.absent
    this.isPrinted = options.isPrinted ?? false
    this.retryAfterMs = options.retryAfterMs
    this.publicCause = options.publicCause
    this.begun = options.begun ?? false
  }

  /** The same error for a request that the handler may have begun. */
  asBegun(): ServeError {
    if (this.begun) return this
    const options = { ...(this as ServeErrorOptions), cause: this.cause, begun: true }
    const copy = new ServeError(this.code, this.message, options)
    if (this.stack !== undefined) copy.stack = this.stack
    return copy
  }

  /** The value of a Retry-After header: whole seconds, at least one. Undefined: nothing is known. */
  get retryAfter(): string | undefined {
    if (this.retryAfterMs === undefined) return undefined
    return String(Math.max(1, Math.ceil(this.retryAfterMs / 1_000)))
  }

  toWire(): WireError {
    const { code, message, status, reason, param, detail, said, absent, retryAfterMs } = this
    return { code, message, status, reason, param, detail, said, absent, retryAfterMs }
  }

  /** Rebuilds an error from the other process, with texts cut. An unknown code becomes INTERNAL. */
  static fromWire(wire: WireError, publicCause?: string): ServeError {
    const known = (ERROR_CODES as readonly string[]).includes(wire.code)
    return new ServeError(known ? wire.code : 'INTERNAL', cut(wire.message), {
      status: wire.status,
      reason: wire.reason && cut(wire.reason),
      param: wire.param && cut(wire.param),
      detail: wire.detail && cut(wire.detail),
      said: wire.said && cut(wire.said),
      absent: wire.absent && cut(wire.absent),
      retryAfterMs: wire.retryAfterMs,
      publicCause,
    })
  }

  /**
   * Converts any thrown value. A value that is not a ServeError becomes INTERNAL, with its stack as detail.
   */
  static from(thrown: unknown): ServeError {
    if (thrown instanceof ServeError) return thrown
    const detail = thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown)
    return new ServeError('INTERNAL', 'Internal server error', { detail, cause: thrown })
  }
}

/** A worker's library cuts its texts sooner; a handler may write frames by itself. */
const MAX_WIRE_CHARACTERS = 32_768

function cut(text: string): string {
  return text.slice(0, MAX_WIRE_CHARACTERS)
}

/** What a machine may have again later: descriptors, processes, memory, room on a disk. */
const CODES: ReadonlySet<unknown> = new Set([
  ...['EMFILE', 'ENFILE', 'EAGAIN', 'ENOMEM', 'ENOSPC', 'EDQUOT', 'EROFS', 'EIO'],
])

/** Whether the machine caused an error, or one of its causes. */
export function isMachineFault(error: unknown): boolean {
  let at = error as { code?: unknown; cause?: unknown } | undefined
  for (; at !== undefined && at !== null; at = at.cause as typeof at) if (CODES.has(at.code)) return true
  return false
}

/** For `catch`: what cannot be read counts as absent. @throws the error, if the machine caused it */
export function absent(error: unknown): undefined {
  if (isMachineFault(error)) throw error
}
