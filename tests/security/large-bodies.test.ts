import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Metadata } from '@grpc/grpc-js'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { call, inferenceV2Client, type Message, openInferenceClient } from '../support/grpc-clients.ts'
import { rawRequest } from '../support/raw-http.ts'
import { REPOSITORY, startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { longestTurn, TURN_PROBE } from '../support/turns.ts'

/** What one request may take of the frontend's thread in one go; idle, most of these take a tenth. */
const MAX_TURN_MS = 1_000
const MAX_BYTES = 6_553_500
const SUPPORT = join(REPOSITORY, 'tests', 'support')

let server: Server

beforeAll(async () => {
  server = await startServer({
    models: [
      `echo=${join(REPOSITORY, 'model-store', 'echo')}`,
      `large=${join(SUPPORT, 'handlers', 'large')}`,
      `json=${join(SUPPORT, 'handlers', 'json-answers')}`,
      `sizes=${join(SUPPORT, 'handlers', 'sizes')}`,
    ],
    config: {
      open_inference_grpc_port: 0,
      ts_open_inference_protocol: true,
      max_response_size: 6_600_000,
      allowed_urls: 'file:///.*',
    },
    nodeArgs: TURN_PROBE,
  })
  await server.ready('echo')
  await server.ready('large')
  await server.ready('sizes')
  await server.ready('json')
  await longestTurn(server)
})

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
    expect(await longestTurn(server)).toBeLessThan(MAX_TURN_MS)
  })

  test.each([
    ['a list for each number', (count: number) => [count, 1]],
    ['eight lists for each number', (count: number) => [count, 1, 1, 1, 1, 1, 1, 1]],
  ])('numbers that become JSON for a handler: %s', async (_what, shape) => {
    expect(await post('/v2/models/echo/infer', tensor('FP32', '1', shape))).toMatch(/^413 /)
    expect(await longestTurn(server)).toBeLessThan(MAX_TURN_MS)
  })

  test.each([
    ['/v1/chat/completions', '"messages":[{"role":"user","content":"x"}],"a"'],
    ['/v1/embeddings', '"input"'],
    ['/v2/repository/index', '"a"'],
  ])('%s: three million numbers', async (path, key) => {
    expect(await post(path, `{"model":"large",${key}:[${'1,'.repeat(3_200_000)}1]}`)).toMatch(
      /^4(00|22) .*must have at most/s,
    )
    expect(await longestTurn(server)).toBeLessThan(MAX_TURN_MS)
  })
})

/** A request of BYTES for a handler that gets them as JSON. */
function texts(count: number, element: Buffer, isRaw: boolean): Message {
  const input = { name: 'x', datatype: 'BYTES', shape: [String(count)] }
  if (!isRaw) {
    const elements = Array.from({ length: count }, () => element)
    return { model_name: 'sizes', inputs: [{ ...input, contents: { bytes_contents: elements } }] }
  }
  const data = Buffer.alloc(count * (4 + element.byteLength))
  for (let at = 0; at < data.byteLength; at += 4 + element.byteLength) {
    data.writeUInt32LE(element.byteLength, at)
    element.copy(data, at + 4)
  }
  return { model_name: 'sizes', inputs: [input], raw_input_contents: [data] }
}

describe('no texts over gRPC that become JSON for a handler keep the others waiting', () => {
  /** With what the JSON becomes: its message, or RESOURCE_EXHAUSTED for more than max_request_size. */
  const all: [what: string, request: Message, v2: unknown, torchserve: unknown][] = [
    ['as many as a message may have', texts(49_980, Buffer.alloc(120, 'a'), false), 'sizes', 8],
    ['of characters that JSON escapes', texts(49_980, Buffer.alloc(120, 1), false), 8, 8],
    ['that are no UTF-8', texts(49_980, Buffer.alloc(120, 0xff), false), 8, 8],
    ['raw, of one byte', texts(1_300_000, Buffer.from('a'), true), 'sizes', 8],
    ['raw, of a byte that is no UTF-8', texts(1_300_000, Buffer.from([0xff]), true), 8, 8],
  ]

  /** Who answered, or the status. */
  async function outcome(answer: Promise<Message>): Promise<unknown> {
    try {
      const { model_name: name, infer_response: response, error_message: error } = await answer
      if (error !== undefined && error !== '') return 8
      return name ?? (response as Message)['model_name']
    } catch (error) {
      return (error as { code: number }).code
    }
  }

  /** The first answer of a stream. */
  function first(kind: 'mlserver' | 'triton', request: Message): Promise<Message> {
    const client = inferenceV2Client(server.ports.openInference, kind)
    const metadata = new Metadata()
    metadata.set('x-stream-shape', kind)
    const stream = client.ModelStreamInfer(metadata)
    return new Promise<Message>((resolve, reject) => {
      stream.on('data', resolve)
      stream.on('error', reject)
      stream.write(request)
      stream.end()
    }).finally(() => client.close())
  }

  test.each(all)('%s: Open Inference, and its streams', async (_what, request, expected) => {
    const client = inferenceV2Client(server.ports.openInference, 'mlserver')
    expect(await outcome(call(client, client['ModelInfer']!, request))).toBe(expected)
    client.close()
    expect(await longestTurn(server)).toBeLessThan(MAX_TURN_MS)
    expect(await outcome(first('mlserver', request))).toBe(expected)
    expect(await longestTurn(server)).toBeLessThan(MAX_TURN_MS)
    expect(await outcome(first('triton', request))).toBe(expected)
    expect(await longestTurn(server)).toBeLessThan(MAX_TURN_MS)
  })

  test.each(all)('%s: TorchServe’s own package', async (_what, request, _v2, expected) => {
    const client = openInferenceClient(server.ports.grpcInference)
    expect(await outcome(call(client, client['ModelInfer']!, request))).toBe(expected)
    client.close()
    expect(await longestTurn(server)).toBeLessThan(MAX_TURN_MS)
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
      expect(await longestTurn(server)).toBeLessThan(MAX_TURN_MS)
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
    expect(await longestTurn(server)).toBeLessThan(MAX_TURN_MS)
  })
})

test('a model-config.yaml of thousands of keys that look misspelt keeps nobody waiting', async () => {
  const keys = Array.from({ length: 4_900 }, (_, k) => `continuousBatchi${String(k).padStart(4, 'x')}`)
  const folder = join(tempDir(), 'misspelt')
  mkdirSync(folder)
  copyFileSync(join(SUPPORT, 'handlers', 'sizes', 'handler.ts'), join(folder, 'handler.ts'))
  writeFileSync(join(folder, 'model-config.yaml'), `{${keys.join(',')}}`)
  await longestTurn(server)
  const path = `/models?url=${encodeURIComponent(folder)}&initial_workers=1&synchronous=true`
  expect((await server.manage('POST', path)).json).toMatchObject({
    status: expect.stringContaining('registered'),
  })
  expect(await longestTurn(server)).toBeLessThan(MAX_TURN_MS)
})

describe('no JSON of a handler that becomes tensors over gRPC keeps the others waiting', () => {
  const ANSWERED = /larger than max|must not have more than 1024|must be a JSON object/

  const ask = (kind: string): Message => ({
    model_name: 'json',
    inputs: ['other', kind].map((name) => ({
      name,
      datatype: 'BYTES',
      shape: ['1'],
      contents: { bytes_contents: [Buffer.from('x')] },
    })),
  })

  test.each(['numbers', 'texts', 'lists', 'outputs', 'parameters', 'text'])('%s', async (kind) => {
    const own = openInferenceClient(server.ports.grpcInference)
    const v2 = inferenceV2Client(server.ports.openInference, 'mlserver')
    for (const client of [v2, own]) {
      // Most are more than the client takes.
      await expect(call(client, client['ModelInfer']!, ask(kind))).rejects.toThrow(ANSWERED)
      expect(await longestTurn(server)).toBeLessThan(MAX_TURN_MS)
    }
    v2.close()
    own.close()
  })
})
