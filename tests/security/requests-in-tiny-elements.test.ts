import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { connect as openSession, type IncomingHttpHeaders } from 'node:http2'
import { connect } from 'node:net'
import { join } from 'node:path'
import { status as Status } from '@grpc/grpc-js'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { call, inferenceV2Client } from '../support/grpc-clients.ts'
import { rawRequest } from '../support/raw-http.ts'
import { grpcMessage } from '../support/raw-http2.ts'
import { REPOSITORY, startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

const INFER = '/inference.GRPCInferenceService/ModelInfer'
const PREDICT = '/org.pytorch.serve.grpc.inference.InferenceAPIsService/Predictions'
const MANY = 1_000_000

let server: Server

beforeAll(async () => {
  const kinds = tempDir()
  writeFileSync(
    join(kinds, 'handler.ts'),
    'export const handle = ([{ body }]) => [Buffer.isBuffer(body) ? `bytes of ${body.length}` : typeof body]\n',
  )
  server = await startServer({
    models: [
      `echo=${join(REPOSITORY, 'model-store', 'echo')}`,
      `kinds=${kinds}`,
      `tensors=${join(REPOSITORY, 'tests', 'support', 'handlers', 'tensors')}`,
    ],
    config: { open_inference_grpc_port: 0, ts_open_inference_protocol: true },
  })
  for (const model of ['echo', 'kinds', 'tensors']) await server.ready(model)
})

/** The status of one call with these bytes; NaN: it was reset without one. */
async function statusOf(port: number, path: string, message: Buffer, headers = {}): Promise<number> {
  const session = openSession(`http://127.0.0.1:${port}`)
  const stream = session.request({
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/grpc',
    te: 'trailers',
    ...headers,
  })
  let status = NaN
  const note = (sent: IncomingHttpHeaders): void => {
    if (sent['grpc-status'] !== undefined) status = Number(sent['grpc-status'])
  }
  stream
    .on('response', note)
    .on('trailers', note)
    .on('error', () => undefined)
    .resume()
  stream.end(grpcMessage(message))
  await once(stream, 'close').catch(() => undefined)
  session.destroy()
  return status
}

describe('gRPC', () => {
  test.each([
    ['inputs', INFER, 'openInference', '2a00'],
    ['outputs', INFER, 'openInference', '3200'],
    ['raw contents', INFER, 'openInference', '3a00'],
    ['parameters', INFER, 'openInference', '2200'],
    ['unknown fields', INFER, 'openInference', '7a00'],
    ['inputs of Predictions', PREDICT, 'grpcInference', '1a00'],
  ] as const)('a million %s of two bytes are refused', async (_what, path, listener, hex) => {
    const message = Buffer.alloc(2 * MANY, hex, 'hex')
    expect(await statusOf(server.ports[listener], path, message)).toBe(Status.RESOURCE_EXHAUSTED)
  })

  test('a tensor of 500,000 numbers is served', async () => {
    const client = inferenceV2Client(server.ports.openInference, 'mlserver')
    const numbers = Array.from({ length: 500_000 }, (_, i) => i % 100)
    const input = { name: 'x', datatype: 'INT32', shape: [500_000], contents: { int_contents: numbers } }
    const answer: unknown = await call(client, client['ModelInfer']!, {
      model_name: 'echo',
      inputs: [input],
    }).catch((error: unknown) => error)
    client.close()
    expect(answer).toMatchObject({ model_name: 'echo' })
  })

  test('metadata of 20 KB get an answer', async () => {
    const headers = { 'x-large': 'a'.repeat(20_000) }
    expect(await statusOf(server.ports.openInference, INFER, Buffer.alloc(0), headers)).toBe(
      Status.RESOURCE_EXHAUSTED,
    )
  })
})

describe('JSON', () => {
  const deep = '['.repeat(MANY) + ']'.repeat(MANY)
  const many = `[${'[],'.repeat(MANY)}1]`
  const keys = `{${Array.from({ length: 100_000 }, (_, i) => `"${i.toString(36)}":1`).join(',')}}`

  test.each(['/v2/models/echo/infer', '/v1/chat/completions', '/v2/repository/index'])(
    '%s refuses what is nested, or has too many elements',
    async (path) => {
      for (const value of [deep, many, keys]) {
        const body = `{"model":"echo","messages":[],"inputs":[],"parameters":{"a":${value}}}`
        const { status, body: said } = await rawRequest(server.ports.inference, path, { body })
        const refused = path.startsWith('/v2') ? 422 : 400
        expect([status, said]).toEqual([refused, expect.stringMatching(/JSON must/)])
      }
    },
  )

  test.each(['application/json', undefined])(
    'a worker does not build it either: a part of type %s stays bytes',
    async (type) => {
      const headers: Record<string, string> = type === undefined ? {} : { 'content-type': type }
      for (const value of [deep, many, keys]) {
        const body = `{"inputs":${value}}`
        const answer = await rawRequest(server.ports.inference, '/predictions/kinds', { headers, body })
        expect([answer.status, answer.body]).toEqual([200, `bytes of ${body.length}`])
      }
      const numbers = `[${'1,'.repeat(MANY)}1]`
      const few = await rawRequest(server.ports.inference, '/predictions/kinds', { headers, body: numbers })
      expect(few.body).toBe(type === undefined ? `bytes of ${numbers.length}` : 'object')
    },
  )

  test('nor does it for a handler with tensor methods', async () => {
    const { status, body } = await rawRequest(server.ports.inference, '/predictions/tensors', {
      body: `{"inputs":${many}}`,
    })
    expect([status, body]).toEqual([400, expect.stringMatching(/JSON must have at most/)])
  })

  test('the management API refuses it too', async () => {
    const headers = { 'content-type': 'application/json' }
    for (const value of [deep, many, keys]) {
      const body = `{"url":${value}}`
      const { status, body: said } = await rawRequest(server.ports.management, '/models', { headers, body })
      expect([status, said]).toEqual([400, expect.stringMatching(/JSON must/)])
    }
  })

  test('a tensor of 500,000 numbers is served', async () => {
    const data = '1.5,'.repeat(499_999) + '1'
    const body = `{"inputs":[{"name":"x","datatype":"FP32","shape":[500000],"data":[${data}]}]}`
    expect((await rawRequest(server.ports.inference, '/v2/models/echo/infer', { body })).status).toBe(200)
  })
})

describe('HTTP chunks', () => {
  /** The status for a body of chunks of this size. */
  async function send(chunk: string, count: number): Promise<number> {
    const socket = connect(server.ports.inference, '127.0.0.1')
    let received = ''
    socket.on('data', (data: Buffer) => (received += data.toString('latin1'))).on('error', () => undefined)
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.write(
      'POST /predictions/none HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n',
    )
    const piece = `${chunk.length.toString(16)}\r\n${chunk}\r\n`.repeat(1_000)
    for (let sent = 0; sent < count && received === ''; sent += 1_000) {
      if (!socket.write(piece))
        await new Promise((resolve) =>
          socket.once('drain', resolve).once('data', resolve).once('close', resolve),
        )
    }
    socket.write('0\r\n\r\n')
    await closed
    return Number(/^HTTP\/1\.1 (\d{3})/.exec(received)?.[1])
  }

  test('two million of a byte are refused; many that are small, and few of a byte, are not', async () => {
    expect(await send('_', 2 * MANY)).toBe(400)
    expect(await send('_'.repeat(64), 40_000)).toBe(404)
    expect(await send('_', 15_000)).toBe(404)
  })
})

describe('workers', () => {
  const refused = expect.stringContaining('A model version must have at most')

  test('a call that asks for more than the limit is refused', async () => {
    const scaled = await server.manage('PUT', '/models/echo?min_worker=50000')
    expect([scaled.status, scaled.json.message]).toEqual([400, refused])
    const most = await server.manage('PUT', '/models/echo?min_worker=1&max_worker=50000')
    expect([most.status, most.json.message]).toEqual([400, refused])
    const url = encodeURIComponent(join(REPOSITORY, 'model-store', 'echo'))
    const registered = await server.manage('POST', `/models?url=${url}&model_name=b&initial_workers=50000`)
    expect(registered.status).toBeGreaterThanOrEqual(400)
    expect((await server.describe('echo'))[0]!.workers).toHaveLength(1)
  })

  test('so is a model whose file does', async () => {
    const store = join(server.folder, 'store', 'greedy')
    mkdirSync(store, { recursive: true })
    writeFileSync(join(store, 'handler.ts'), 'export function handle() { return "x" }\n')
    for (const [config, why] of [
      ['minWorkers: 2\nmaxWorkers: 50000\n', refused],
      ['minWorkers: 2\nparallelType: tp\nparallelLevel: 1000\ndeviceType: cpu\n', refused],
      ['batchSize: 2000000000\n', expect.stringContaining('batchSize must be at most')],
      ['['.repeat(400_000), expect.stringContaining('64 levels')],
    ] as const) {
      writeFileSync(join(store, 'model-config.yaml'), config)
      const { status, json } = await server.manage('POST', '/models?url=greedy')
      expect([status, json.message]).toEqual([400, why])
    }
  })
})
