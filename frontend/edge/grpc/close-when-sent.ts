import type { ServerHttp2Stream } from 'node:http2'

/** Milliseconds from one look at the stream to the next. */
const LOOK_MS = 10

/**
 * Closes a stream whose answer is complete while its client still sends. nghttp2 drops every frame of a stream
 * that waits when it is closed, and the status is one of them: so it closes once the status, which ends our
 * side of the stream, is written.
 */
export function closeWhenSent(stream: ServerHttp2Stream): void {
  if (stream.destroyed || stream.closed) return
  if (stream.state.localClose === 1) stream.close()
  else setTimeout(closeWhenSent, LOOK_MS, stream).unref()
}
