import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { ServeError } from '../../../common/errors.ts'
import { bareText } from './bare-answer.ts'
import type { RestState } from './rest-state.ts'

/** The first byte of a TLS handshake record. */
const TLS_HANDSHAKE = 0x16
/** How long a connection may take to send its first byte. */
const FIRST_BYTE_MS = 20_000
/** How long what a refused client still sends is read, so that it gets to see the answer. */
const LINGER_MS = 2_000

/**
 * Makes an https server look at the first byte of each connection: who speaks plain HTTP gets an answer that
 * says so instead of a TLS alert, which no HTTP client can show. It stands before Node's own listener, which
 * begins TLS and is no public name: tests/edge/http/node-internals.test.ts watches it. @throws ServeError
 * INTERNAL when Node has no such listener
 */
export function acceptTlsOnly(server: Server, state: RestState): void {
  const [accept, ...others] = server.listeners('connection') as ((socket: Socket) => void)[]
  if (accept === undefined || others.length > 0)
    throw new ServeError('INTERNAL', 'This version of Node.js starts TLS in a way that is not known here')
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
