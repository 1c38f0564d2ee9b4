import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { ServeError } from '../../../common/errors.ts'
import { bareText } from './bare-answer.ts'
import type { RestState } from './rest-state.ts'

/** The first byte of a TLS handshake record. */
const TLS_HANDSHAKE = 0x16
/** Milliseconds that a connection has to send its first byte. */
const FIRST_BYTE_MS = 20_000
/** Milliseconds for which a refused client's bytes are read, so that it can read the response. */
const LINGER_MS = 2_000

/**
 * Makes an https server check the first byte of each connection. A plain HTTP client gets a readable response
 * instead of a TLS alert. The check runs before Node's own listener, which begins TLS and is not public:
 * tests/edge/http/node-internals.test.ts checks it. @throws ServeError INTERNAL when Node has no such
 * listener
 */
export function acceptTlsOnly(server: Server, state: RestState): void {
  const [accept, ...others] = server.listeners('connection') as ((socket: Socket) => void)[]
  if (accept === undefined || others.length > 0)
    throw new ServeError(
      'INTERNAL',
      'This version of Node.js is not supported for TLS listeners; use Node.js 20 or 24',
    )
  server.removeListener('connection', accept)
  server.on('connection', (socket: Socket) => {
    socket.setTimeout(FIRST_BYTE_MS)
    socket.once('timeout', destroy).once('error', destroy)
    socket.once('readable', () => {
      const first = socket.read() as Buffer | null
      if (first === null) {
        socket.destroy()
        return
      }
      socket.setTimeout(0)
      if (first[0] !== TLS_HANDSHAKE) {
        refuse(state, socket)
        return
      }
      socket.off('timeout', destroy).off('error', destroy)
      socket.unshift(first)
      accept.call(server, socket)
    })
  })
}

function destroy(this: Socket): void {
  this.destroy()
}

function refuse(state: RestState, socket: Socket): void {
  const answer = state.errors.httpsOnly()
  state.metrics.response(answer.status)
  socket.setTimeout(LINGER_MS)
  socket.end(bareText(answer))
  socket.once('end', destroy).resume()
}
