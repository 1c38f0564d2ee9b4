import type { ServerHttp2Stream } from 'node:http2'

/** Milliseconds from one look at the connection's queue to the next. */
const LOOK_MS = 10

/**
 * Closes a stream whose answer is complete while its client still sends. nghttp2 drops every frame of a
 * stream that waits when it is closed, and the status is one of them: so it closes once nothing waits any
 * more. `onClosed` is called then.
 */
export function closeWhenSent(stream: ServerHttp2Stream, onClosed?: () => void): void {
  if (stream.destroyed) return
  if (!stream.closed && (stream.session?.state.outboundQueueSize ?? 0) > 0) {
    setTimeout(closeWhenSent, LOOK_MS, stream, onClosed).unref()
    return
  }
  if (!stream.closed) stream.close()
  onClosed?.()
}
