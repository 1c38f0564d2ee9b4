import { STATUS_CODES } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { connectionOf } from './connection.ts'
import type { RestState } from './rest-state.ts'

/** An answer on a connection where there is no request to answer. */
export interface BareAnswer {
  readonly status: number
  /** Flat: name, value, name, value. */
  readonly headers: readonly string[]
  readonly body: string
}

/** The answer as it stands on the wire. */
export function bareText({ status, headers, body }: BareAnswer): string {
  const lines = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`]
  for (let i = 0; i < headers.length; i += 2) lines.push(`${headers[i]!}: ${headers[i + 1]!}`)
  lines.push(`content-length: ${Buffer.byteLength(body)}`)
  return `${lines.join('\r\n')}\r\n\r\n${body}`
}

/** Answers what is no HTTP request (400), or took too long to arrive (408), and closes the connection. */
export function answerClientError(state: RestState, error: NodeJS.ErrnoException, socket: Duplex): void {
  // Bytes of ours in the middle of another response would be taken for a part of it.
  const connection = socket instanceof Socket ? connectionOf(socket) : undefined
  if (error.code === 'ECONNRESET' || !socket.writable || connection?.answering === true) {
    socket.destroy()
    return
  }
  const answer = state.errors.malformed(error.code === 'ERR_HTTP_REQUEST_TIMEOUT')
  state.metrics.response(answer.status)
  if (connection !== undefined) state.accessLog?.malformed(connection.peer, answer.status)
  socket.end(bareText(answer), () => socket.destroy())
}
