import { connect } from 'node:net'
import { once } from 'node:events'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { peakBytes } from '../support/memory.ts'
import { rawRequest } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'

const MAX_REQUEST_SIZE = 1_000_000
/** Garbage that V8 leaves while it reads any body of this size. */
const GARBAGE_BYTES = 64_000_000

let server: Server

beforeAll(async () => {
  server = await startServer({ config: { max_request_size: MAX_REQUEST_SIZE } })
})
afterAll(() => server.stop())

/** Chunks of this size are taken in any number. */
const PIECE = 64

/** Every 64 bytes are an HTTP chunk of their own. */
async function sendPieces(path: string, body: Buffer, ...headers: string[]): Promise<number> {
  const socket = connect(server.ports.inference, '127.0.0.1')
  let received = ''
  socket.on('data', (data: Buffer) => (received += data.toString('latin1')))
  const closed = once(socket, 'close')
  const lines = [
    `POST ${path} HTTP/1.1`,
    'Host: a',
    'Connection: close',
    'Transfer-Encoding: chunked',
    ...headers,
  ]
  socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  for (let at = 0; at < body.byteLength; at += 800 * PIECE) {
    const piece = body.subarray(at, at + 800 * PIECE)
    const chunks: Buffer[] = []
    for (let i = 0; i < piece.byteLength; i += PIECE) {
      const chunk = piece.subarray(i, i + PIECE)
      chunks.push(Buffer.from(`${chunk.byteLength.toString(16)}\r\n`), chunk, Buffer.from('\r\n'))
    }
    if (!socket.write(Buffer.concat(chunks))) await once(socket, 'drain')
  }
  socket.write('0\r\n\r\n')
  await closed
  return Number(/^HTTP\/1\.1 (\d{3})/.exec(received)?.[1])
}

const PART = Buffer.from('--b\r\nContent-Disposition: form-data; name=a; filename=f\r\n\r\n')
const CONTENT = randomBytes(900_000)
const multipart = Buffer.concat([PART, CONTENT, Buffer.from('\r\n--b--\r\n')])
const form = Buffer.from(`a=${'%41'.repeat(300_000)}`)

test.each([
  ['raw', '/predictions/none', CONTENT, 404, []],
  ['compressed', '/v1/chat/completions', gzipSync(CONTENT), 400, ['Content-Encoding: gzip']],
  ['multipart', '/predictions/none', multipart, 404, ['Content-Type: multipart/form-data; boundary=b']],
  ['form', '/predictions/none', form, 404, ['Content-Type: application/x-www-form-urlencoded']],
])(
  'a %s body in tiny pieces takes no more memory than twice max_request_size',
  async (_kind, path, body, status, headers) => {
    await rawRequest(server.ports.inference, '/predictions/none', { body: CONTENT })
    peakBytes(server.pid)
    const before = peakBytes(server.pid)
    expect(await sendPieces(path, body, ...headers)).toBe(status)
    const grown = peakBytes(server.pid) - before
    expect(grown).toBeLessThan(2 * MAX_REQUEST_SIZE + GARBAGE_BYTES)
  },
)

/** Milliseconds of processor time that the server has used. */
function cpuMs(): number {
  const [user, system] = readFileSync(`/proc/${server.pid}/stat`, 'latin1')
    .split(') ')[1]!
    .split(' ')
    .slice(11, 13)
  return (Number(user) + Number(system)) * 10
}

/** A body of six million bytes, each a chunk of its own; resolves when it was cut off. */
async function sendBytes(port: number, line: string): Promise<string> {
  const socket = connect(port, '127.0.0.1').on('error', () => undefined)
  let received = ''
  socket.on('data', (data: Buffer) => (received += data.toString('latin1')))
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()))
  socket.write(`${line} HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n`)
  const chunks = Buffer.from('1\r\na\r\n'.repeat(10_000))
  for (let sent = 0; sent < 600 && socket.writable; sent += 1)
    if (!socket.write(chunks))
      await Promise.race([closed, new Promise((resolve) => socket.once('drain', resolve))])
  await closed
  return received
}

test.each([
  ['that asks for none', 'GET /metrics', 'metrics', 200],
  ['that was refused', 'GET /nowhere', 'inference', 404],
  ['that breaks the rule', 'POST /predictions/none', 'inference', 400],
] as const)(
  'a body in chunks of a byte is not read on after the answer to a request %s',
  async (_what, line, listener, status) => {
    await rawRequest(server.ports[listener], line.split(' ')[1]!, { method: 'GET' })
    const before = cpuMs()
    expect(await sendBytes(server.ports[listener], line)).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    // Reading all of it takes more than ten seconds, two seconds of it about two.
    expect(cpuMs() - before).toBeLessThan(1_000)
  },
)

test('a body that nobody asked for is read on after the answer, and the next request is answered', async () => {
  const socket = connect(server.ports.metrics, '127.0.0.1').on('error', () => undefined)
  let received = ''
  socket.on('data', (data: Buffer) => (received += data.toString('latin1')))
  const closed = once(socket, 'close')
  const get = 'GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n'
  socket.write(`${get}Transfer-Encoding: chunked\r\n\r\n`)
  // More than a connection may send beside its requests.
  const chunk = Buffer.concat([Buffer.from('10000\r\n'), Buffer.alloc(65_536, 'x'), Buffer.from('\r\n')])
  for (let sent = 0; sent < 64 && socket.writable; sent += 1)
    if (!socket.write(chunk)) await Promise.race([closed, once(socket, 'drain')])
  // Until the server has looked at what its connections send.
  await new Promise((resolve) => setTimeout(resolve, 200))
  socket.write(`0\r\n\r\n${get}Connection: close\r\n\r\n`)
  await closed
  expect(received.match(/^HTTP\/1\.1 \d+/gm)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200'])
})
