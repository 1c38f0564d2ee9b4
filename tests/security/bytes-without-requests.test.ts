import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Agent, type IncomingMessage, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { frameOf, RawHttp2 } from '../support/raw-http2.ts'
import { startServer, type Server } from '../support/server.ts'

const HEALTH = '/grpc.health.v1.Health/Check'
const PREDICT = '/org.pytorch.serve.grpc.inference.InferenceAPIsService/Predictions'
/** Bytes after which the connection must have been ended. */
const ENOUGH = 512 * 1024 * 1024

let server: Server

beforeAll(async () => {
  server = await startServer({ flags: [] })
})

/** Sends the piece again and again; whether the server ended the connection. */
async function flood(socket: Socket, piece: Buffer): Promise<boolean> {
  const many = Buffer.concat(new Array<Buffer>(Math.ceil(65_536 / piece.byteLength)).fill(piece))
  const closed = new Promise<void>((resolve) => socket.once('close', resolve))
  for (let sent = 0; sent < ENOUGH && !socket.destroyed; sent += many.byteLength) {
    if (socket.write(many)) continue
    await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), closed])
  }
  return socket.destroyed
}

const WINDOW_UPDATE = frameOf(8, 0, 0, Buffer.from([0, 0, 0, 1]))
const PADDED = 8
/** Of a head that is allowed. */
const LARGE = 'x'.repeat(7_000)
/** A literal header of one letter with an empty value. */
const TRAILERS = frameOf(1, 4, 1, Buffer.from([0, 1, 97, 0]))

describe('a gRPC connection without a token is ended that sends nothing but', () => {
  test.each([
    ['WINDOW_UPDATE', undefined, WINDOW_UPDATE],
    ['PRIORITY', undefined, frameOf(2, 0, 1, Buffer.from([0, 0, 0, 0, 16]))],
    ['frames of an unknown type', undefined, frameOf(0xee, 0, 0, Buffer.alloc(0))],
    ['padding', HEALTH, frameOf(0, PADDED, 1, Buffer.concat([Buffer.from([255]), Buffer.alloc(255)]))],
    ['headers of a call that is over', PREDICT, TRAILERS],
  ])('%s', async (_what, path, piece) => {
    const raw = new RawHttp2(server.ports.grpcInference)
    await raw.ready()
    if (path !== undefined) {
      const stream = raw.call(path)
      if (path === PREDICT) await raw.until(() => raw.over(stream))
    }
    expect(await flood(raw.socket, piece)).toBe(true)
  })
})

test('a gRPC connection stays that makes calls with large metadata and opens its windows for each answer', async () => {
  const raw = new RawHttp2(server.ports.grpcInference)
  await raw.ready()
  for (let made = 0; made < 200 && !raw.closed; made++) {
    const stream = raw.call(HEALTH, { 'x-large': LARGE })
    raw.data(stream, Buffer.alloc(5))
    raw.endStream(stream)
    raw.socket.write(Buffer.concat([WINDOW_UPDATE, WINDOW_UPDATE]))
    await raw.until(() => raw.over(stream))
  }
  expect([raw.closed, raw.goaway, raw.ended.size]).toEqual([false, undefined, 200])
  await raw.destroy()
})

const POST = 'POST /predictions/m HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n'

describe('a REST connection is ended that sends nothing but', () => {
  test.each([
    ['empty lines before a request', '', '\r\n'],
    ['spaces in a head', 'GET /ping HTTP/1.1\r\nHost:', ' '],
    ['zeros of the size of a chunk', POST, '0'],
  ])('%s', async (_what, head, piece) => {
    const socket = connect(server.ports.inference, '127.0.0.1')
    socket.on('error', () => undefined).resume()
    await once(socket, 'connect')
    socket.write(head)
    expect(await flood(socket, Buffer.from(piece))).toBe(true)
  })
})

test('a REST connection stays that makes requests with large headers', async () => {
  const keys = JSON.parse(readFileSync(join(server.folder, 'key_file.json'), 'utf8')) as {
    inference: { key: string }
  }
  const headers = { authorization: `Bearer ${keys.inference.key}`, 'x-large': LARGE }
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const ports = new Set<number | undefined>()
  for (let made = 0; made < 200; made++) {
    const asked = request({ agent, host: '127.0.0.1', port: server.ports.inference, path: '/ping', headers })
    const [response] = (await once(asked.end(), 'response')) as [IncomingMessage]
    ports.add(response.socket.localPort)
    await once(response.resume(), 'end')
  }
  expect(ports.size).toBe(1)
  agent.destroy()
})
