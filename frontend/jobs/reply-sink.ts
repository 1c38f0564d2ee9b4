import type { ServeError } from '../../common/errors.ts'

/** Status and headers of a response, taken from its first item. */
export interface ReplyHead {
  /** HTTP status; 200 unless the handler set another. */
  status: number
  /** Reason phrase, if the handler set one. */
  reason?: string
  /** Absent unless the handler set one. */
  contentType?: string
  /** Headers that the handler set, with names as it wrote them. */
  headers: Readonly<Record<string, string>>
}

/**
 * The destination of one job's response; each dialect has one per protocol. A job calls either `whole` once,
 * or `open`, then `write` any number of times, then `close`. It may call `fail` at any point before the end.
 * Exactly one of `whole`, `close` and `fail` comes last. Nothing is called after the client itself cancelled
 * the job.
 */
export interface ReplySink {
  /** The unary response. */
  whole(head: ReplyHead, body: Uint8Array): void
  /** Begins a stream: writes status and headers. `write` follows in the same turn of the event loop. */
  open(head: ReplyHead): void
  /**
   * One item of a stream: the bytes from..to of `chunk`. Copy what must be kept, because the chunk may be
   * much larger. An empty item is a message in gRPC and nothing in chunked HTTP.
   * @returns false when the client's connection is full: call `job.drained()` once it has room again
   */
  write(chunk: Uint8Array, from: number, to: number): boolean
  /** Ends the stream successfully. */
  close(): void
  /** The job failed: send an error before `open`, or break the stream visibly after it. */
  fail(error: ServeError): void
}

/** One response of the worker to one job. */
export interface JobResponse extends ReplyHead {
  body: Uint8Array
  /** Absent: the unary response. `true`: an item, and more follow. `false`: the last item of a stream. */
  more?: boolean
}
