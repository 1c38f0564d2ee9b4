import type { ServerHttp2Stream } from 'node:http2'
import { FAREWELL_MS } from './limits.ts'

/**
 * Closes a stream whose answer is complete while its client still sends (RFC 9113, 8.1). Not at once: nghttp2
 * drops what a closed stream has not sent, the status included, and a client of grpc-js that gets the reset
 * with the status in one piece reports the reset.
 */
export function closeWhenSent(stream: ServerHttp2Stream): void {
  const timer = setTimeout(() => {
    // The status ends our side of the stream. Before it is written, closing would drop it.
    if (stream.state.localClose !== 1 && !stream.closed) {
      closeWhenSent(stream)
      return
    }
    stream.close()
    // Node keeps a stream that is paused and has something to read.
    stream.resume()
  }, FAREWELL_MS)
  timer.unref()
  stream.once('close', () => clearTimeout(timer))
}
