import { inspect } from 'node:util'
import { ServeError } from '../common/errors.ts'
import { type Outlet, sendLog } from './outlet.ts'
import type { CancelReason } from '../protocol/messages.ts'

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
const MAX_MESSAGE_CHARACTERS = 4096
const MAX_DETAIL_CHARACTERS = 16_384

const OUT_OF_MEMORY =
  /out of memory|allocation failed|failed to allocate|cannot allocate memory|invalid (array|string|array buffer) length|CUDA/i

/** Converts what a handler threw, or returned as an item, to the error of its request. */
export function handlerError(thrown: unknown): ServeError {
  if (thrown instanceof ServeError) return thrown
  const detail = describeThrown(thrown)
  if (isPredictionException(thrown)) {
    const known = Number.isInteger(thrown.code) && thrown.code >= 400 && thrown.code < 600
    const status = known ? thrown.code : 500
    const { reason, param, retryAfterMs } = thrown as Error & {
      reason?: unknown
      param?: unknown
      retryAfterMs?: unknown
    }
    const more = {
      reason: textOrNothing(reason),
      param: textOrNothing(param),
      retryAfterMs: isDelay(retryAfterMs) ? retryAfterMs : undefined,
    }
    return new ServeError('HANDLER_REJECTED', messageOf(thrown), { status, detail, ...more })
  }
  if (looksOutOfMemory(thrown)) return new ServeError('OUT_OF_MEMORY', 'Out of resources', { detail })
  return new ServeError('HANDLER_FAILED', 'Prediction failed', { detail, said: messageOf(thrown) })
}

function textOrNothing(value: unknown): string | undefined {
  return typeof value === 'string' ? value.slice(0, 256) : undefined
}

/** The protocol between worker and frontend takes no others. */
function isDelay(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && Number.isFinite(value)
}

/** TorchServe's rule, adapted to JavaScript: failed allocations, and any message that contains CUDA. */
export function looksOutOfMemory(thrown: unknown): boolean {
  return thrown instanceof Error && OUT_OF_MEMORY.test(thrown.message)
}

/** The message of any thrown value, cut to a length that fits a frame. */
export function messageOf(thrown: unknown): string {
  const message = thrown instanceof Error ? thrown.message || thrown.name : describeThrown(thrown)
  return message.slice(0, MAX_MESSAGE_CHARACTERS)
}

/** Calls a hook of the handler that no request waits for. What it throws is logged. */
export function callHook(name: string, outlet: Outlet, hook: () => unknown): void {
  const failed = (thrown: unknown): void =>
    sendLog(outlet, 'error', `The handler threw in ${name}: ${describeThrown(thrown)}`)
  try {
    void Promise.resolve(hook()).catch(failed)
  } catch (thrown) {
    failed(thrown)
  }
}

/** Of the sources, or of what is built: there the worker is in `backend-worker` and in shared `chunks`. */
const HOME = import.meta.url.replace(/(backend-worker|chunks)\/[^/]*$/, '')

/**
 * A line of a stack in the worker's own code, which tells the author of a handler nothing. The last line of a
 * stack may end with the brace that begins the properties of the error: that stays.
 */
const OWN_FRAME = new RegExp(
  `\\n +at .*${escaped(HOME)}(?:backend-worker|chunks|common|protocol)/.*?( \\{)?$`,
  'gm',
)

/** Stack, causes and properties of any thrown value, for the log. */
export function describeThrown(thrown: unknown): string {
  try {
    return inspect(thrown).replace(OWN_FRAME, '$1').slice(0, MAX_DETAIL_CHARACTERS)
  } catch {
    return 'A thrown value that cannot be printed'
  }
}

/**
 * Errors that the server gave to a handler: abort reasons and refused sends. An unhandled rejection with one
 * of them must not end the worker and its other requests; main.ts checks here.
 */
const own = new WeakSet()

/** Marks an error as the server's own and returns it. */
export function markOwn<E extends Error>(error: E): E {
  own.add(error)
  return error
}

export function isOwn(thrown: unknown): boolean {
  return typeof thrown === 'object' && thrown !== null && own.has(thrown)
}

/**
 * Throw it, or return it as an item, to fail a request with your own status and message, which the client
 * sees. Any other error answers 503 `Prediction failed`, and only the log contains its message.
 */
export class PredictionException extends Error {
  override readonly name = 'PredictionException'
  /** HTTP status, 400 to 599; any other value becomes 500. Default 500. */
  readonly code: number

  constructor(message: string, code = 500) {
    super(message)
    this.code = code
  }
}

/** Checks the shape, so that an instance from another copy of this package is recognized. */
function isPredictionException(thrown: unknown): thrown is PredictionException {
  return (
    thrown instanceof Error &&
    thrown.name === 'PredictionException' &&
    'code' in thrown &&
    typeof thrown.code === 'number'
  )
}

/** The abort reason of a cancelled request. Its name is `AbortError`, as in the web platform. */
export class RequestCancelledError extends Error {
  override readonly name = 'AbortError'
  readonly reason: CancelReason

  constructor(reason: CancelReason) {
    super(`The request was cancelled: ${reason}`)
    this.reason = reason
    markOwn(this)
  }
}
