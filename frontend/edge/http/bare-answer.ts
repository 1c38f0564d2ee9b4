import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { sendAnswers } from './chunk-writer.ts'
import { type Connection, connectionOf } from './connection.ts'
import type { RestState } from './rest-state.ts'
import { NO_SNIFF } from './safe-response.ts'

/** A response on a connection that has no request to answer. */
export interface BareAnswer {
  readonly status: number
  /** Flat: name, value, name, value. */
  readonly headers: readonly string[]
  readonly body: string
}

/** The response in wire format. */
export function bareText({ status, headers, body }: BareAnswer): string {
  const lines = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`]
  for (let i = 0; i < headers.length; i += 2) lines.push(`${headers[i]!}: ${headers[i + 1]!}`)
  lines.push(NO_SNIFF.join(': '), `content-length: ${Buffer.byteLength(body)}`)
  return `${lines.join('\r\n')}\r\n\r\n${body}`
}

/**
 * Answers bytes that are not an HTTP request (400), or a request that arrived too slowly (408), once the
 * requests before it have their answers, and closes the connection.
 */
export function answerClientError(state: RestState, error: NodeJS.ErrnoException, socket: Duplex): void {
  const connection = socket instanceof Socket ? connectionOf(socket) : undefined
  const isLate = error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
  // Node tells it once for each request, and goes on reading.
  if (isLate && connection?.limitsOwnTime === true) return
  if (error.code === 'ECONNRESET') {
    socket.destroy()
    return
  }
  // It tells every further piece, too.
  if (connection?.isMalformed === true) return
  if (connection !== undefined) connection.isMalformed = true
  endMalformed(state, isLate, socket, connection)
}

function endMalformed(
  state: RestState,
  isLate: boolean,
  socket: Duplex,
  connection: Connection | undefined,
): void {
  sendAnswers()
  // Bytes in the middle of another response would become part of it.
  if (!socket.writable || connection?.answering === true) {
    socket.destroy()
    return
  }
  const turn = turnOf(socket)
  if (turn === 'over') {
    socket.end(() => socket.destroy())
    return
  }
  if (turn !== 'now') {
    turn.once('close', () => endMalformed(state, isLate, socket, connection))
    return
  }
  const answer = state.errors.malformed(isLate)
  state.metrics.response(answer.status)
  if (connection !== undefined) state.accessLog?.malformed(connection.peer, answer.status)
  socket.end(bareText(answer), () => socket.destroy())
}

/**
 * When what was malformed may be answered: after a response to another request; never, as the body of a
 * request that has its response. Node's properties are not public, and node-internals.test.ts checks them
 * too.
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
