import { randomUUID } from 'node:crypto'
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { prettyJson } from '../../dialects/torchserve/rest-errors.ts'
import { commonHeaders } from './reply-headers.ts'
import type { RestState } from './rest-state.ts'

/** The first byte of a TLS handshake record. */
const TLS_HANDSHAKE = 0x16
/** How long a connection may take to send its first byte. */
const FIRST_BYTE_MS = 20_000
/** How long what a refused client still sends is read, so that it gets to see the answer. */
const LINGER_MS = 2_000

const STATUS = 'This TorchServe instance only accepts HTTPS requests'

/**
 * Makes an https server look at the first byte of each connection: who speaks plain HTTP gets a 403 that says so (spec 1.3) instead
 * of a TLS alert, which no HTTP client can show.
 */
export function acceptTlsOnly(server: Server, state: RestState): void {
  const [accept] = server.listeners('connection') as ((socket: Socket) => void)[]
  server.removeListener('connection', accept!)
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
      accept!.call(server, socket)
    })
  })
}

function destroy(this: Socket): void {
  this.destroy()
}

function refuse(state: RestState, socket: Socket): void {
  const body = prettyJson({ status: STATUS })
  const headers = commonHeaders(randomUUID(), false)
  headers.push('content-type', 'application/json', 'content-length', String(Buffer.byteLength(body)))
  let head = 'HTTP/1.1 403 Forbidden\r\n'
  for (let i = 0; i < headers.length; i += 2) head += `${headers[i]!}: ${headers[i + 1]!}\r\n`
  state.metrics.response(403)
  socket.setTimeout(LINGER_MS)
  socket.end(`${head}\r\n${body}`)
  socket.once('end', destroy).resume()
}
