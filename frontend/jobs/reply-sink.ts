import type { ServeError } from '../../common/errors.ts'

/** Status and headers of an answer, taken from its first response. */
export interface ReplyHead {
  /** HTTP status, 200 unless the handler set one. */
  status: number
  /** Reason phrase, if the handler set one. */
  reason?: string
  /** Absent unless the handler set one. */
  contentType?: string
  /** Headers that the handler set, names as it wrote them. */
  headers: Readonly<Record<string, string>>
}

/**
 * Where the answer to one job goes: each dialect on each protocol has one. A job calls either `whole` once, or `open`,
 * `write` any number of times and `close`, or `fail` at any point before the end; exactly one of whole, close and fail
 * comes last and nothing after it. Nothing is called after the job was cancelled by its own client.
 */
export interface ReplySink {
  /** The whole answer at once. */
  whole(head: ReplyHead, body: Uint8Array): void
  /** The first item of a stream is here: write status and headers now. `write` follows in the same turn. */
  open(head: ReplyHead): void
  /**
   * One item of a stream: the bytes from..to of `chunk`, which is not to be kept (it may be much larger). The item may be empty
   * (gRPC sends a message for it, chunked HTTP nothing).
   * Returns false when the client's connection is full: call `job.drained()` once it has room again.
   */
  write(chunk: Uint8Array, from: number, to: number): boolean
  /** The stream finished well. */
  close(): void
  /** The job failed: a proper error before `open`, a visibly broken stream after it. */
  fail(error: ServeError): void
}
