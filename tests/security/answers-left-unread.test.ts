import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect, type Socket } from 'node:net'
import type { ServiceDefinition } from '@grpc/grpc-js'
import { beforeAll, expect, test } from '@jest/globals'
import { call, inferenceClient, inferenceV2Client, readAll } from '../support/grpc-clients.ts'
import { modelFolder } from '../support/model-folder.ts'
import { COUNT, type CountRun, countInput, ECHO, produced } from '../support/count.ts'
import { grpcMessage, RawHttp2 } from '../support/raw-http2.ts'
import { rawRequest } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'

const MIB = 1024 * 1024
const RST_STREAM = 3
const CANCEL = 8
const PREDICT = '/org.pytorch.serve.grpc.inference.InferenceAPIsService/Predictions'
/** Four times as many bytes of answers; one address has half, a little more than two of the largest. */
const MAX_UNFINISHED = 8 * MIB

let server: Server

beforeAll(async () => {
  const models = [ECHO, COUNT, modelFolder('tensors', 'tensors', {})]
  const config = { max_unfinished_bytes: MAX_UNFINISHED, triton_grpc_port: 0 }
  server = await startServer({ models, config })
  await Promise.all([server.ready('echo'), server.ready('count'), server.ready('tensors')])
})

/** The answer of `echo` to this text, over both protocols. */
async function neighbour(): Promise<void> {
  const { status, body } = await rawRequest(server.ports.inference, '/predictions/echo', { body: 'hello' })
  expect([status, body]).toEqual([200, 'hello'])
  const client = inferenceClient(server.ports.grpcInference)
  const request = { model_name: 'echo', input: { body: Buffer.from('hello') } }
  const { prediction } = await call(client, client.Predictions, request)
  expect(prediction.toString()).toBe('hello')
  client.close()
}

/** Asks `echo` for an answer of so many bytes, and reads nothing. */
function unreading(bytes: number): Socket {
  const socket = connect(server.ports.inference, '127.0.0.1')
  socket.on('error', () => undefined).pause()
  ask(socket, bytes)
  return socket
}

function ask(socket: Socket, bytes: number): void {
  const head = [
    'POST /predictions/echo HTTP/1.1',
    'Host: localhost',
    'content-type: application/octet-stream',
    `content-length: ${bytes}`,
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\n`)
  socket.write(Buffer.alloc(bytes, 'x'))
}

test('answers that are read count no more, however many: unary ones and streams over gRPC', async () => {
  const client = inferenceClient(server.ports.grpcInference)
  const request = { model_name: 'echo', input: { body: Buffer.alloc(MIB, 'x') } }
  for (let i = 0; i < 40; i += 1)
    expect((await call(client, client.Predictions, request)).prediction).toHaveLength(MIB)
  const run = countInput({ id: 'read', n: 60, size: MIB, delay: 0, stream: true })
  const { messages, error } = await readAll(client.StreamPredictions(run))
  expect([messages.length, error]).toEqual([60, undefined])
  client.close()
})

test('answers that are read late count no more: REST', async () => {
  const before = await answered()
  const socket = unreading(5 * MIB)
  for (let i = 1; i <= 10; i += 1) {
    await server.until(answered, (count) => count >= before + i)
    expect(await bytesOf(socket, 5 * MIB)).toBeGreaterThan(5 * MIB)
    socket.pause()
    ask(socket, 5 * MIB)
  }
  socket.destroy()
})

test('answers of calls that their client ends count no more', async () => {
  const attacker = new RawHttp2(server.ports.grpcInference)
  await attacker.ready()
  const [path, request] = predictions()
  const before = await finished()
  for (let i = 0; i < 40; i += 1) {
    const stream = attacker.call(path)
    expect(await attacker.dataAll(stream, grpcMessage(request))).toBe(true)
    attacker.endStream(stream)
    await server.until(finished, (count) => count > before + i)
    attacker.frame(RST_STREAM, 0, stream, Buffer.from([0, 0, 0, CANCEL]))
  }
  expect(attacker.closed).toBe(false)
  attacker.socket.destroy()
})

test('of REST clients that do not read their answers, the newest are closed, and the others read on', async () => {
  const before = await answered()
  const sockets: Socket[] = []
  // One after the other: what all upload at once would be too much.
  for (let i = 1; i <= 8; i += 1) {
    sockets.push(unreading(6 * MIB))
    await server.until(answered, (count) => count >= before + i)
  }
  const ports = sockets.map(({ localPort }) => localPort)
  await neighbour()
  // No other test before it has had a connection closed, so the first line is of one of these.
  const [told] = await server.lines('too many bytes of answers wait')
  expect(ports).toContain(Number(/of 127\.0\.0\.1:(\d+) was closed/.exec(told!)?.[1]))
  const bytes = await Promise.all(sockets.map((socket) => bytesOf(socket)))
  const whole = bytes.filter((count) => count > 6 * MIB).length
  expect(whole).toBeGreaterThan(0)
  expect(whole).toBeLessThan(sockets.length)
})

test('items of REST streams that wait for their clients count', async () => {
  const ids = ['a', 'b', 'c', 'd']
  const sockets = ids.map((id) => {
    const socket = connect(server.ports.inference, '127.0.0.1')
      .on('error', () => undefined)
      .pause()
    post(socket, { id: `large ${id}`, n: 8, size: 6 * MIB, delay: 0, stream: true })
    return socket
  })
  const states = (): Promise<string[]> =>
    Promise.all(ids.map(async (id) => (await produced(server, `large ${id}`)).state))
  await server.until(states, (all) => all.includes('cancelled'))
  await neighbour()
  for (const socket of sockets) socket.destroy()
})

test('gRPC answers that are small, but many, count', async () => {
  const attackers = Array.from({ length: 3 }, () => new RawHttp2(server.ports.grpcInference))
  const [path, request] = predictions(31_000)
  let sent = await finished()
  for (const attacker of attackers) {
    await attacker.ready()
    for (let call = 1; call <= 256 && !attacker.closed; call += 1) {
      const stream = attacker.call(path)
      if (await attacker.dataAll(stream, grpcMessage(request))) attacker.endStream(stream)
      sent += 1
      // More would not fit the queue.
      if (call % 64 === 0 && !attacker.closed)
        await server.until(finished, (count) => count >= sent || attacker.closed)
    }
    if (attackers.some(({ closed }) => closed)) break
  }
  await Promise.race(attackers.map((attacker) => attacker.until(() => false)))
  await neighbour()
  for (const attacker of attackers) attacker.socket.destroy()
})

test('items of gRPC streams that wait for their clients count, also behind items that were read', async () => {
  const attacker = new RawHttp2(server.ports.grpcInference)
  await attacker.ready()
  // Of each stream two items fit, and of the third some.
  attacker.window(0, 3 * 13 * MIB)
  for (let i = 0; i < 3; i += 1) {
    const [path, request] = streamed({ id: `large gRPC ${i}`, n: 8, size: 6 * MIB, delay: 0, stream: true })
    const stream = attacker.call(path)
    attacker.window(stream, 12 * MIB)
    expect(await attacker.dataAll(stream, grpcMessage(request))).toBe(true)
    attacker.endStream(stream)
  }
  while (!attacker.closed) await attacker.heard()
  await neighbour()
})

/** Asks the model `count` for a run. */
function post(socket: Socket, run: CountRun): void {
  const body = JSON.stringify(run)
  const head = ['POST /predictions/count HTTP/1.1', 'Host: localhost', 'content-type: application/json']
  socket.write([...head, `content-length: ${body.length}`, '', body].join('\r\n'))
}

/** Answers that have begun, by the access log. */
function answered(model = 'echo'): Promise<number> {
  const log = readFileSync(join(server.folder, 'logs', 'access_log.log'), 'utf8')
  return Promise.resolve(log.split(`"POST /predictions/${model} HTTP/1.1" 200`).length - 1)
}

/** The bytes of an answer, or of what there was until the connection broke. */
async function bytesOf(socket: Socket, all = 6 * MIB): Promise<number> {
  let bytes = 0
  let isOver = false
  const count = (chunk: Buffer): void => void (bytes += chunk.length)
  const end = (): void => void (isOver = true)
  socket.on('data', count).on('close', end).resume()
  while (bytes <= all && !isOver) await new Promise((resolve) => setTimeout(resolve, 5))
  socket.off('data', count).off('close', end)
  return bytes
}

/** The path of an rpc that answers with a mebibyte, and its request. */
type Asked = [path: string, request: Buffer]

function predictions(bytes = MIB): Asked {
  // PredictionsRequest { model_name: "echo", input: { "body": so many bytes } }
  const data = Buffer.alloc(bytes, 'x')
  const entry = Buffer.concat([Buffer.from('\n\u0004body\u0012'), varint(data.length), data])
  const input = Buffer.concat([Buffer.from([0x1a]), varint(entry.length), entry])
  return [PREDICT, Buffer.concat([Buffer.from('\n\u0004echo'), input])]
}

function streamed(run: CountRun): Asked {
  const client = inferenceClient(server.ports.grpcInference)
  const { path, requestSerialize } = serviceOf(client)['StreamPredictions']!
  client.close()
  return [path, requestSerialize(countInput(run))]
}

function modelInfer(): Asked {
  const client = inferenceV2Client(server.ports.triton, 'triton')
  const { path, requestSerialize } = serviceOf(client)['ModelInfer']!
  client.close()
  const input = { name: 'x', datatype: 'UINT8', shape: [MIB] }
  const request = { model_name: 'tensors', inputs: [input], raw_input_contents: [Buffer.alloc(MIB)] }
  return [path, requestSerialize(request)]
}

function serviceOf(client: object): ServiceDefinition {
  return (client.constructor as unknown as { service: ServiceDefinition }).service
}

test.each([
  ["TorchServe's API", () => server.ports.grpcInference, predictions],
  ['the Open Inference Protocol', () => server.ports.triton, modelInfer],
])('a gRPC connection that opens no window for its answers is closed: %s', async (_name, port, asked) => {
  const attacker = new RawHttp2(port())
  await attacker.ready()
  const [path, request] = asked()
  const send = async (): Promise<number> => {
    const stream = attacker.call(path)
    if (await attacker.dataAll(stream, grpcMessage(request))) attacker.endStream(stream)
    return stream
  }
  // What it has read before makes no room for what it leaves.
  attacker.window(0, 50 * MIB)
  for (let i = 0; i < 40; i += 1) {
    const stream = await send()
    attacker.window(stream, 2 * MIB)
    await attacker.until(() => attacker.ended.has(stream))
    expect(attacker.closed).toBe(false)
  }
  for (let i = 0; i < 40 && !attacker.closed; i += 1) await send()
  while (!attacker.closed) await attacker.heard()
  await neighbour()
})

/** Requests to `echo` that have been answered, as far as the server is concerned. */
async function finished(): Promise<number> {
  const { body } = await rawRequest(server.ports.metrics, '/metrics', { method: 'GET' })
  const line =
    /^torchserve_ts_requests_ended_total\{.*model_name="echo".*kind="unary",outcome="finished",\} (\d+)/m
  return Number(line.exec(body)?.[1] ?? 0)
}

function varint(value: number): Buffer {
  const bytes: number[] = []
  for (let rest = value; rest > 0; rest >>>= 7) bytes.push(rest > 127 ? (rest & 127) | 128 : rest)
  return Buffer.from(bytes)
}
