import { connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { CONTENT_TYPE } from './ceilings/workload.ts'
import type { GrpcCall } from './grpc-calls.ts'

/** Small clients that read raw bytes, so that they count what was really on the wire. */

export interface Answer {
  /** HTTP status, or the gRPC status code. */
  status: number
  body: string
  /** Number of HTTP chunks or gRPC messages; 1 for an answer with a length. */
  pieces: number
  /** Of the whole answer, as the load generator counts them: HTTP with its head, gRPC's messages alone. */
  bytes: number
}

type Headers = Readonly<Record<string, string>>

/** Opens a connection and posts. The caller reads. */
export function post(url: string, body: string | Buffer, headers: Headers = {}): Socket {
  const { protocol, hostname, port } = new URL(url)
  const place = { port: Number(port), host: hostname }
  const socket = protocol === 'https:' ? connectTls({ ...place, rejectUnauthorized: false }) : connect(place)
  socket.write(requestBytes(url, body, headers))
  return socket
}

/** A whole POST request, of bytes unless its headers say another content type. */
export function requestBytes(url: string, body: string | Buffer, headers: Headers = {}): Buffer {
  const { hostname, pathname } = new URL(url)
  const bytes = Buffer.from(body)
  const sent = { host: hostname, 'content-type': CONTENT_TYPE, ...headers, 'content-length': bytes.length }
  const head = Object.entries(sent).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.concat([Buffer.from(`POST ${pathname} HTTP/1.1\r\n${head.join('')}\r\n`), bytes])
}

export async function postAndRead(
  url: string,
  body: string | Buffer,
  headers: Headers = {},
): Promise<Answer> {
  const socket = post(url, body, { ...headers, connection: 'close' })
  let text = ''
  for await (const part of socket) {
    text += (part as Buffer).toString('latin1')
    if (isWhole(text)) break // not every server closes on request
  }
  const end = text.indexOf('\r\n\r\n')
  const head = text.slice(0, end)
  const rest = text.slice(end + 4)
  const status = Number(head.split(' ')[1])
  return /^transfer-encoding: chunked$/im.test(head)
    ? { status, ...chunked(rest), bytes: text.length }
    : { status, body: rest, pieces: 1, bytes: text.length }
}

/** Whether an answer is complete, by its length or its last chunk. */
export function isWhole(text: string): boolean {
  const end = text.indexOf('\r\n\r\n')
  if (end < 0) return false
  const head = text.slice(0, end)
  if (/^transfer-encoding: chunked$/im.test(head)) return text.endsWith('\r\n0\r\n\r\n')
  return text.length - end - 4 >= Number(/^content-length: (\d+)$/im.exec(head)?.[1] ?? Infinity)
}

function chunked(text: string): { body: string; pieces: number } {
  let body = ''
  let pieces = 0
  for (let at = 0; ;) {
    const line = text.indexOf('\r\n', at)
    const size = parseInt(text.slice(at, line), 16)
    if (line < 0 || Number.isNaN(size)) throw new Error('The chunked body is broken')
    if (size === 0) return { body, pieces }
    body += text.slice(line + 2, line + 2 + size)
    pieces++
    at = line + 4 + size
  }
}

export async function callAndRead(origin: string, call: GrpcCall, headers: Headers = {}): Promise<Answer> {
  const session = connectHttp2(origin, { rejectUnauthorized: false })
  session.on('error', () => undefined) // the stream fails with it
  try {
    const stream = session.request({
      ':method': 'POST',
      ':path': call.path,
      'content-type': 'application/grpc',
      te: 'trailers',
      ...headers,
    })
    let status = -1
    const note = (headers: Record<string, unknown>): void => {
      if (headers['grpc-status'] !== undefined) status = Number(headers['grpc-status'])
    }
    stream.on('response', note)
    stream.on('trailers', note)
    stream.end(call.message)
    const parts: Buffer[] = []
    for await (const part of stream) parts.push(part as Buffer)
    const bytes = Buffer.concat(parts)
    return { status, ...messages(bytes), bytes: bytes.length }
  } finally {
    session.close()
  }
}

/**
 * Our PredictionResponse has at most one field of bytes, shorter than 128: tag, length, bytes. An
 * empty message, which some servers send last, is no piece.
 */
function messages(bytes: Buffer): { body: string; pieces: number } {
  let body = ''
  let pieces = 0
  for (let at = 0; at < bytes.length;) {
    const end = at + 5 + bytes.readUInt32BE(at + 1)
    if (end > at + 7) pieces += 1
    body += bytes.toString('latin1', Math.min(at + 7, end), end)
    at = end
  }
  return { body, pieces }
}
