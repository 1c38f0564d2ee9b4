import { Metadata, status as Status } from '@grpc/grpc-js'
import { type ErrorCode, ServeError } from '../../../common/errors.ts'
import { escapeControls } from '../../../common/texts.ts'

/** How a call fails, in the shape that grpc-js takes. */
export interface CallError {
  code: Status
  details: string
  /** Milliseconds after which the same call may succeed; undefined: nothing is known. */
  retryAfterMs?: number | undefined
  /** For grpc-js, which sends it with the status. */
  metadata?: Metadata
}

/** An error as one service tells it. */
export type ToCallError = (error: ServeError) => CallError

/** What gRPC's own retries obey (gRFC A6), and what those who know HTTP look for. */
export function retryMetadata(afterMs: number): Record<string, string> {
  return {
    'grpc-retry-pushback-ms': String(afterMs),
    'retry-after': String(Math.max(1, Math.ceil(afterMs / 1_000))),
  }
}

/** A failure that also says when to repeat the call, if that is known. */
export function withRetry(error: CallError, { retryAfterMs }: Pick<ServeError, 'retryAfterMs'>): CallError {
  if (retryAfterMs === undefined) return error
  const metadata = Metadata.fromHttp2Headers(retryMetadata(retryAfterMs))
  return { ...error, retryAfterMs, metadata }
}

const COMMON_STATUS: ReadonlyMap<ErrorCode, Status> = new Map([
  ['UNAUTHORIZED', Status.UNAUTHENTICATED],
  ['RATE_LIMITED', Status.RESOURCE_EXHAUSTED],
])

/** Of services that belong to no dialect. */
export function commonError(error: ServeError): CallError {
  return { code: COMMON_STATUS.get(error.code) ?? Status.UNKNOWN, details: printable(error.message) }
}

/** There is no room for the bytes of one more request. */
export const NO_ROOM: CallError = {
  code: Status.RESOURCE_EXHAUSTED,
  details: 'Too many bytes of unfinished requests wait on this connection or server; send fewer at a time',
}

/** What the gRPC half needs of a logger; pino's fits. */
export interface GrpcLog {
  debug(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** Failures of our own go to the log with their stack; clients see only the message. */
export function logFailure(log: GrpcLog, rpc: string, error: ServeError): void {
  if (error.code !== 'INTERNAL') return
  log.error({ rpc, detail: error.detail ?? error.stack }, error.message)
}

/** gRPC clients take about 8 KB of trailers, and one character may need nine bytes there. */
const MAX_MESSAGE_CHARACTERS = 800

/**
 * Without control characters, since clients print and log it; without lone surrogates, on which grpc-js
 * throws; and short enough for a trailer.
 */
export function printable(message: string): string {
  const cut =
    message.length > MAX_MESSAGE_CHARACTERS ? `${message.slice(0, MAX_MESSAGE_CHARACTERS)}...` : message
  return escapeControls(Buffer.from(cut).toString())
}

const FROM_HTTP: ReadonlyMap<number, Status> = new Map([
  [400, Status.INVALID_ARGUMENT],
  [401, Status.UNAUTHENTICATED],
  [403, Status.PERMISSION_DENIED],
  [404, Status.NOT_FOUND],
  [409, Status.ABORTED],
  [413, Status.RESOURCE_EXHAUSTED],
  [416, Status.OUT_OF_RANGE],
  [429, Status.RESOURCE_EXHAUSTED],
  [499, Status.CANCELLED],
  [501, Status.UNIMPLEMENTED],
  [503, Status.UNAVAILABLE],
  [504, Status.DEADLINE_EXCEEDED],
])

/** The status for an HTTP status that a handler chose, as in google.rpc.Code's comments. */
export function fromHttpStatus(status: number): Status {
  const named = FROM_HTTP.get(status)
  if (named !== undefined) return named
  if (status >= 400 && status < 500) return Status.FAILED_PRECONDITION
  return status >= 500 && status < 600 ? Status.INTERNAL : Status.UNKNOWN
}

const FAILED: CallError = { code: Status.INTERNAL, details: 'Internal server error' }

/**
 * A listener of one call: grpc-js catches no exception there, so it would end the process. It fails this call
 * alone, as `fail` does it: not at all where the call is over already.
 */
export function guarded<Args extends unknown[]>(
  log: GrpcLog,
  fail: (error: CallError) => void,
  listener: (...args: Args) => void,
): (...args: Args) => void {
  return (...args) => {
    try {
      listener(...args)
    } catch (thrown) {
      logFailure(log, 'a stream', ServeError.from(thrown))
      fail(FAILED)
    }
  }
}
