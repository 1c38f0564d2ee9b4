import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect, test } from '@jest/globals'
import { COUNT, countBody, ECHO } from '../support/count.ts'
import { frameOf, grpcMessage, RawHttp2 } from '../support/raw-http2.ts'
import { startServer, type Server } from '../support/server.ts'

const KIB = 1024
const PREDICT = '/org.pytorch.serve.grpc.inference.InferenceAPIsService/Predictions'
const WINDOW_UPDATE = frameOf(8, 0, 0, Buffer.from([0, 0, 0, 1]))

/** Sends the piece until the connection is closed, and returns its port. */
async function flood(socket: Socket, piece: Buffer): Promise<number> {
  const { localPort } = socket
  const many = Buffer.concat(new Array<Buffer>(Math.ceil((64 * KIB) / piece.byteLength)).fill(piece))
  const closed = new Promise<void>((resolve) => socket.once('close', resolve))
  while (!socket.destroyed) {
    if (socket.write(many)) await new Promise((resolve) => setImmediate(resolve))
    else await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), closed])
  }
  return localPort!
}

async function client(server: Server): Promise<Socket> {
  const socket = connect(server.ports.inference, '127.0.0.1')
  socket.on('error', () => undefined).resume()
  await once(socket, 'connect')
  return socket
}

/** A request to `count` whose answer never comes, and so many behind it. */
async function pipelined(server: Server): Promise<number> {
  const socket = await client(server)
  const { body } = countBody({ id: 'held', n: 2, gated: true, stream: false })
  const head = `POST /predictions/count HTTP/1.1\r\nHost: a\r\nContent-Type: application/json`
  const { localPort } = socket
  socket.write(`${head}\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
  socket.write('GET /ping HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(200))
  await once(socket, 'close')
  return localPort!
}

/** Calls `echo` until the connection is closed, and opens no window for the answers. */
async function unreadGrpc(server: Server): Promise<number> {
  const attacker = new RawHttp2(server.ports.grpcInference)
  await attacker.ready()
  const { localPort } = attacker.socket
  // PredictionsRequest { model_name: "echo", input: { "body": 400,000 bytes } }
  const data = Buffer.alloc(400_000, 'x')
  const body = Buffer.concat([Buffer.from('\n\u0004body\u0012'), varint(data.length), data])
  const input = Buffer.concat([Buffer.from([0x1a]), varint(body.length), body])
  const request = grpcMessage(Buffer.concat([Buffer.from('\n\u0004echo'), input]))
  for (let made = 0; made < 40 && !attacker.closed; made += 1) {
    const stream = attacker.call(PREDICT)
    if (await attacker.dataAll(stream, request)) attacker.endStream(stream)
  }
  while (!attacker.closed) await attacker.heard()
  return localPort!
}

function varint(value: number): Buffer {
  const bytes: number[] = []
  for (let rest = value; rest > 0; rest >>>= 7) bytes.push(rest > 127 ? (rest & 127) | 128 : rest)
  return Buffer.from(bytes)
}

const SMALL = { max_response_size: 512 * KIB, max_unfinished_bytes: KIB * KIB }

test.each<[string, string, (server: Server) => Promise<number>]>([
  ['too many pipelined requests', 'too many requests came before the answers', pipelined],
  [
    'bytes of no request, over REST',
    'bytes came that belong to no request',
    async (server) => flood(await client(server), Buffer.from('\r\n')),
  ],
  [
    'bytes of no request, over gRPC',
    'bytes came that belong to no request',
    async (server) => {
      const raw = new RawHttp2(server.ports.grpcInference)
      await raw.ready()
      return flood(raw.socket, WINDOW_UPDATE)
    },
  ],
  ['answers that are not read, over gRPC', 'too many bytes of answers wait', unreadGrpc],
])('the log has one line for a connection that is closed: %s', async (_what, words, attack) => {
  const server = await startServer({ models: [COUNT, ECHO], config: SMALL })
  await Promise.all([server.ready('count'), server.ready('echo')])
  const port = await attack(server)
  const lines = await server.lines(words)
  expect(lines).toEqual([expect.stringContaining(`WARN`) as unknown])
  expect(lines[0]).toContain(`The connection of 127.0.0.1:${port} was closed: `)
  // What the server says last would come behind a second one.
  expect(await server.stop()).toBe(0)
  expect(server.output.filter((line) => line.includes('closed: '))).toEqual(lines)
})

test('of connections that are closed at once, those without a line are counted, at the latest when the server stops', async () => {
  const server = await startServer({ models: [COUNT, ECHO] })
  await server.ready('count')
  await Promise.all(Array.from({ length: 5 }, () => pipelined(server)))
  expect(await server.stop()).toBe(0)
  const told = (): number =>
    server.output
      .flatMap((line) => [
        ...line.matchAll(/The connection of|(\d+) more before it|More connections \((\d+)\)/g),
      ])
      .reduce((sum, [, before, later]) => sum + Number(before ?? later ?? 1), 0)
  await server.until(
    () => Promise.resolve(told()),
    (count) => count === 5,
  )
})
