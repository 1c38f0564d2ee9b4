import { join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { call, inferenceV2Client } from '../support/grpc-clients.ts'
import { rawRequest } from '../support/raw-http.ts'
import { REPOSITORY, startServer, type Server } from '../support/server.ts'

/** What one request may take of the frontend's thread in one go; idle, most of these take a tenth. */
const MAX_TURN_MS = 200
const MAX_BYTES = 6_553_500
const SUPPORT = join(REPOSITORY, 'tests', 'support')

let server: Server

beforeAll(async () => {
  server = await startServer({
    models: [
      `echo=${join(REPOSITORY, 'model-store', 'echo')}`,
      `large=${join(SUPPORT, 'handlers', 'large')}`,
    ],
    config: { open_inference_grpc_port: 0, ts_open_inference_protocol: true, max_response_size: 6_600_000 },
    nodeArgs: ['--import', join(SUPPORT, 'turn-probe.mjs')],
  })
  await server.ready('echo')
  await server.ready('large')
  await longestTurn()
})

/** Milliseconds of processor time that the main thread spent in one go since the last call. */
async function longestTurn(): Promise<number> {
  const seen = server.output.length
  server.process.kill('SIGUSR2')
  const found = await server.until(
    () => Promise.resolve(server.output.slice(seen).find((line) => line.startsWith('turn-probe'))),
    (line) => line !== undefined,
  )
  return Number(found!.slice('turn-probe '.length))
}

async function post(path: string, body: string): Promise<string> {
  const { status, body: said } = await rawRequest(server.ports.inference, path, { body })
  return `${status} ${said.slice(0, 200)}`
}

/** Like `post`, for answers of many megabytes, which a raw request would join again with each read. */
async function receive(path: string, body: string): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${server.ports.inference}${path}`, { method: 'POST', body })
  const said = await response.arrayBuffer()
  return `${response.status} ${Buffer.from(said, 0, Math.min(200, said.byteLength)).toString()}`
}

/** As many equal elements as a request may have. */
function tensor(datatype: string, element: string, shape: (count: number) => number[]): string {
  const count = Math.floor((MAX_BYTES - 300) / (element.length + 1))
  const data = `${`${element},`.repeat(count - 1)}${element}`
  return `{"inputs":[{"name":"x","datatype":"${datatype}","shape":${JSON.stringify(shape(count))},"data":[${data}]}]}`
}

describe('no request as large as it may be keeps the others waiting', () => {
  test.each([
    ['numbers of 16 bits', tensor('FP16', '1', (count) => [count]), /^200 .*3276\d\d\d/],
    ['integers of 18 digits', tensor('INT64', '-900719925474099123', (count) => [count]), /^200 /],
    [
      'numbers that do not fit the shape',
      tensor('FP32', '0.123456789', () => [7]),
      /^422 .*must have 7 elements/,
    ],
    [
      'a shape of a million dimensions',
      tensor('FP32', '1', (count) => Array.from({ length: count / 40 }, () => 1)),
      /^4\d\d /,
    ],
  ])('Open Inference over REST: %s', async (_what, body, answer) => {
    expect(await post('/v2/models/large/infer', body)).toMatch(answer)
    expect(await longestTurn()).toBeLessThan(MAX_TURN_MS)
  })

  test.each([
    ['a list for each number', (count: number) => [count, 1]],
    ['eight lists for each number', (count: number) => [count, 1, 1, 1, 1, 1, 1, 1]],
  ])('numbers that become JSON for a handler: %s', async (_what, shape) => {
    expect(await post('/v2/models/echo/infer', tensor('FP32', '1', shape))).toMatch(/^413 /)
    expect(await longestTurn()).toBeLessThan(MAX_TURN_MS)
  })

  test.each([
    ['/v1/chat/completions', '"messages":[{"role":"user","content":"x"}],"a"'],
    ['/v1/embeddings', '"input"'],
    ['/v2/repository/index', '"a"'],
  ])('%s: three million numbers', async (path, key) => {
    expect(await post(path, `{"model":"large",${key}:[${'1,'.repeat(3_200_000)}1]}`)).toMatch(
      /^400 .*must have at most/s,
    )
    expect(await longestTurn()).toBeLessThan(MAX_TURN_MS)
  })
})

describe('no answer as large as it may be keeps the others waiting', () => {
  const datatypes = [
    ['FP16', 2],
    ['FP32', 4],
    ['UINT8', 1],
    ['BYTES', 4],
  ] as const

  test.each(datatypes)('%s over REST, whole and as an event', async (datatype, size) => {
    const parameters = { datatype, bytes: 6_400_000, size }
    const body = JSON.stringify({ parameters, inputs: [] })
    for (const path of ['infer', 'infer_stream']) {
      expect(await receive(`/v2/models/large/${path}`, body)).toMatch(/^200 (data: )?\{"model_name":"large"/)
      expect(await longestTurn()).toBeLessThan(MAX_TURN_MS)
    }
  })

  test.each([['BOOL', 1] as const, ...datatypes])('%s over gRPC', async (datatype, size) => {
    const client = inferenceV2Client(server.ports.openInference, 'mlserver')
    const parameters = {
      datatype: { string_param: datatype },
      bytes: { int64_param: 1_600_000 },
      size: { int64_param: size },
    }
    const answer = await call(client, client['ModelInfer']!, { model_name: 'large', inputs: [], parameters })
    client.close()
    const [output] = (answer as { outputs: { shape: unknown[] }[] }).outputs
    expect(Number(output!.shape[0])).toBe(1_600_000 / size)
    expect(await longestTurn()).toBeLessThan(MAX_TURN_MS / 2)
  })
})
