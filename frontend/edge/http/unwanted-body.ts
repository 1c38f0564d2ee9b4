import { ChunkAllowance } from './chunk-allowance.ts'
import type { ServerRequest } from './server-request.ts'

/** Chunks of any size that are read although nobody wants them. */
const UNWANTED_CHUNKS = 1_000

/** Milliseconds in which a client that still sends can read the answer. */
export const LINGER_MS = 2_000

/**
 * Reads on a body that nobody wants, so that its sender gets to read the answer, and so that the next request
 * can follow. Tiny chunks are work even then: after some of them the connection is read no further, and
 * closed.
 */
export function skipBody(req: ServerRequest): void {
  const allowance = new ChunkAllowance(UNWANTED_CHUNKS)
  let isCut = false
  const pass = (chunk: Buffer): void => {
    if (isCut || allowance.take(chunk)) return
    isCut = true
    const timer = setTimeout(() => req.socket.destroySoon(), LINGER_MS)
    req.once('close', () => clearTimeout(timer))
    // Before the next read of this turn of the event loop, which would be thousands of chunks more.
    process.nextTick(() => req.pause())
  }
  req.release()
  req.on('data', pass).resume()
}
