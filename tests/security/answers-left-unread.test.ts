import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect, type Socket } from 'node:net'
import type { ServiceDefinition } from '@grpc/grpc-js'
import { beforeAll, expect, test } from '@jest/globals'
import { call, inferenceClient, inferenceV2Client } from '../support/grpc-clients.ts'
import { modelFolder } from '../support/model-folder.ts'
import { ECHO } from '../support/count.ts'
import { grpcMessage, RawHttp2 } from '../support/raw-http2.ts'
import { rawRequest } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'

const MIB = 1024 * 1024
const PREDICT = '/org.pytorch.serve.grpc.inference.InferenceAPIsService/Predictions'
/** Two answers of the largest size count as little; this is a little more. */
const MAX_UNREAD = 16 * MIB

let server: Server

beforeAll(async () => {
  const models = [ECHO, modelFolder('tensors', 'tensors', {})]
  const config = { max_unread_bytes: MAX_UNREAD, triton_grpc_port: 0 }
  server = await startServer({ models, config })
  await Promise.all([server.ready('echo'), server.ready('tensors')])
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
  const head = [
    'POST /predictions/echo HTTP/1.1',
    'Host: localhost',
    'content-type: application/octet-stream',
    `content-length: ${bytes}`,
  ]
  socket.on('error', () => undefined).pause()
  socket.write(`${head.join('\r\n')}\r\n\r\n`)
  socket.write(Buffer.alloc(bytes, 'x'))
  return socket
}

test('of REST clients that do not read their answers, those with most are closed, and the others read on', async () => {
  const sockets = Array.from({ length: 16 }, () => unreading(6 * MIB))
  // All have their answers, as far as they go.
  await server.until(answered, (count) => count >= sockets.length)
  await neighbour()
  const bytes = await Promise.all(sockets.map(readAll))
  const whole = bytes.filter((count) => count > 6 * MIB).length
  expect(whole).toBeGreaterThan(0)
  expect(whole).toBeLessThan(sockets.length)
})

/** Answers that have begun, by the access log. */
function answered(): Promise<number> {
  const log = readFileSync(join(server.folder, 'logs', 'access_log.log'), 'utf8')
  return Promise.resolve(log.split('"POST /predictions/echo HTTP/1.1" 200').length - 1)
}

/** The bytes of an answer, or of what there was until the connection broke. */
async function readAll(socket: Socket): Promise<number> {
  let bytes = 0
  let isOver = false
  socket
    .on('data', (chunk: Buffer) => (bytes += chunk.length))
    .on('close', () => (isOver = true))
    .resume()
  while (bytes <= 6 * MIB && !isOver) await new Promise((resolve) => setTimeout(resolve, 5))
  return bytes
}

/** The path of an rpc that answers with a mebibyte, and its request. */
type Asked = [path: string, request: Buffer]

function predictions(): Asked {
  // PredictionsRequest { model_name: "echo", input: { "body": a mebibyte } }
  const data = Buffer.alloc(MIB, 'x')
  const entry = Buffer.concat([Buffer.from('\n\u0004body\u0012'), varint(data.length), data])
  const input = Buffer.concat([Buffer.from([0x1a]), varint(entry.length), entry])
  return [PREDICT, Buffer.concat([Buffer.from('\n\u0004echo'), input])]
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
  for (let i = 0; i < 40 && !attacker.closed; i += 1) {
    const stream = attacker.call(path)
    if (await attacker.dataAll(stream, grpcMessage(request))) attacker.endStream(stream)
  }
  while (!attacker.closed) await attacker.heard()
  await neighbour()
})

test('answers that are read count no more, however many', async () => {
  const client = inferenceClient(server.ports.grpcInference)
  const request = { model_name: 'echo', input: { body: Buffer.alloc(MIB, 'x') } }
  for (let i = 0; i < 20; i += 1)
    expect((await call(client, client.Predictions, request)).prediction).toHaveLength(MIB)
  client.close()
})

function varint(value: number): Buffer {
  const bytes: number[] = []
  for (let rest = value; rest > 0; rest >>>= 7) bytes.push(rest > 127 ? (rest & 127) | 128 : rest)
  return Buffer.from(bytes)
}
