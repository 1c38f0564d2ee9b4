import { randomUUID } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { Socket } from 'node:net'
import { errorBody } from '../../dialects/torchserve/rest-errors.ts'
import { hasLiveReplies } from './live-replies.ts'
import { commonHeaders } from './reply-headers.ts'
import type { RestState } from './rest-state.ts'

/** Answers what is no HTTP request (400), or took too long to arrive (408), and closes the connection. */
export function answerClientError(state: RestState, error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable || isAnswering(socket)) {
    socket.destroy()
    return
  }
  const late = error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
  const status = late ? 408 : 400
  const body = late
    ? errorBody(408, 'RequestTimeoutException', 'The request took too long to arrive.')
    : errorBody(400, 'BadRequestException', 'Invalid HTTP message.')
  const headers = commonHeaders(randomUUID(), false)
  headers.push('content-type', 'application/json', 'content-length', String(Buffer.byteLength(body)))
  let head = `HTTP/1.1 ${late ? '408 Request Timeout' : '400 Bad Request'}\r\n`
  for (let i = 0; i < headers.length; i += 2) head += `${headers[i]!}: ${headers[i + 1]!}\r\n`
  state.metrics.response(status)
  if (socket instanceof Socket) state.accessLog?.malformed(socket, status)
  socket.end(`${head}\r\n${body}`, () => socket.destroy())
}

/** Bytes of ours in the middle of another response would be taken for a part of it. */
function isAnswering(socket: Duplex): boolean {
  return socket instanceof Socket && (hasLiveReplies(socket) || socket.writableLength > 0)
}
