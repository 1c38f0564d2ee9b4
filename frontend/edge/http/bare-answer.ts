import type { EventEmitter } from 'node:events'
import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { sendAnswers } from './chunk-writer.ts'
import { type Connection, connectionOf, UNREAD_LIMIT_MS } from './connection.ts'
import type { RestState } from './app.ts'
import { NO_SNIFF } from './safe-response.ts'
import { ServeError } from '../../../common/errors.ts'

/** A response on a connection that has no request to answer. */
export interface BareAnswer {
  readonly status: number
  /** Flat: name, value, name, value. */
  readonly headers: readonly string[]
  readonly body: string
}

/** The response in wire format. */
function bareText({ status, headers, body }: BareAnswer): string {
  const lines = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`]
  for (let i = 0; i < headers.length; i += 2) lines.push(`${headers[i]!}: ${headers[i + 1]!}`)
  lines.push(NO_SNIFF.join(': '), `Date: ${new Date().toUTCString()}`)
  lines.push(`content-length: ${Buffer.byteLength(body)}`)
  return `${lines.join('\r\n')}\r\n\r\n${body}`
}

/**
 * Answers bytes that are not an HTTP request (400) once the requests before them have their answers, or a
 * request that arrives too slowly (408), and closes the connection.
 */
export function answerClientError(state: RestState, error: NodeJS.ErrnoException, socket: Duplex): void {
  const connection = socket instanceof Socket ? connectionOf(socket) : undefined
  const isLate = error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
  // Without a parser, such as in a TLS handshake that takes too long, there is nobody to answer.
  if (error.code === 'ECONNRESET' || (socket as { parser?: unknown }).parser === undefined) {
    socket.destroy()
    return
  }
  // Node reports each further piece as one more error.
  if (connection?.isEnding === true) return
  if (connection !== undefined) connection.isEnding = true
  endInTurn(state, isLate, socket, connection, false)
}

function endInTurn(
  state: RestState,
  isLate: boolean,
  socket: Duplex,
  connection: Connection | undefined,
  hasWaited: boolean,
): void {
  sendAnswers()
  if (!socket.writable) {
    socket.destroy()
    return
  }
  const turn = turnOf(socket)
  if (turn !== 'now' && turn !== 'over') {
    // Who sends anything wrong into a stream gets no more of it. A late request is no fault: Node reads none
    // of it while the stream before it goes on.
    if (!isLate && !hasWaited && turn.headersSent && !turn.writableEnded) {
      socket.destroy()
      return
    }
    turn.once('close', () => endInTurn(state, isLate, socket, connection, true))
    if (turn.writableEnded) destroyUnlessClosed(socket, turn)
    else turn.once('prefinish', () => destroyUnlessClosed(socket, turn))
    return
  }
  // Of a stream that began before its request was whole.
  if (turn === 'over' && connection?.answering === true) {
    socket.destroy()
    return
  }
  destroyUnlessClosed(socket, socket)
  // A request that was late may have arrived meanwhile, and has its answer then.
  if (turn === 'over' || (isLate && hasWaited)) {
    socket.end(() => socket.destroy())
    return
  }
  const answer = state.errors.malformed(isLate)
  state.metrics.response(answer.status)
  if (connection !== undefined) state.accessLog?.malformed(connection.peer, answer.status)
  socket.end(bareText(answer), () => socket.destroy())
}

/** Not a timeout of the socket, which each further piece would put off. */
function destroyUnlessClosed(socket: Duplex, closes: EventEmitter): void {
  const timer = setTimeout(() => socket.destroy(), UNREAD_LIMIT_MS)
  closes.once('close', () => clearTimeout(timer))
}

/**
 * The response that must be sent first; `now`; or `over`: the bytes are the rest of a body whose request was
 * already answered, so there is nothing to answer. Node's properties are not public, and
 * node-internals.test.ts checks them too.
 */
function turnOf(socket: Duplex): 'now' | 'over' | ServerResponse {
  const { _httpMessage: next, parser } = socket as {
    _httpMessage?: ServerResponse | null
    parser?: { incoming?: IncomingMessage | null } | null
  }
  const last = parser?.incoming ?? undefined
  const isInBody = last?.complete === false
  if (next === undefined || next === null) return isInBody ? 'over' : 'now'
  if (next.req !== last || !isInBody) return next
  return next.headersSent ? 'over' : 'now'
}

/**
 * Ends a connection that is one too many, before anything of it is read: with 503, or at once where TLS would
 * have to begin first.
 */
export function refuseConnection(state: RestState, socket: Socket, tls: boolean): void {
  if (tls) {
    socket.resetAndDestroy()
    return
  }
  const answer = state.errors.tooManyConnections()
  state.metrics.response(answer.status)
  socket.on('error', () => undefined)
  socket.end(bareText(answer), () => socket.destroy())
}

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
