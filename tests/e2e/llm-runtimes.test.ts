import { once } from 'node:events'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { events } from '../support/events.ts'
import { call, inferenceV2Client, readAll, type Message } from '../support/grpc-clients.ts'
import { REPOSITORY, startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

/**
 * Seldon's two runtimes, as their model-settings.json names them, called with its tensors over every
 * protocol.
 */

const GGUF = join(REPOSITORY, 'model-store', 'tiny-llama', 'model.gguf')
const MESSAGES = [{ role: 'user', content: 'Who made the earth?' }]
const SURE = { temperature: 0, max_tokens: 12 }

const BOTH = `import { StringCodec } from 'torchserve-ts'
export default class Both {
  handle(requests) { return requests.map((request) => 'handled ' + Object.keys(request)) }
  predict(request) { return { outputs: [StringCodec.encodeOutput('count', [String(request.inputs.length)])] } }
  async *chatCompletions({ messages }) { yield { choices: [{ index: 0, delta: { content: String(messages.length) } }] } }
}
`

type Json = Record<string, unknown>

let server: Server
let mlserver: ReturnType<typeof inferenceV2Client>
let triton: ReturnType<typeof inferenceV2Client>
/** A fake provider; each test sets its behaviour. */
let provide: (body: Json, res: ServerResponse, req: IncomingMessage) => void
const provider = createServer((req, res) => {
  let body = ''
  req.on('data', (data: Buffer) => (body += data.toString()))
  req.on('end', () => provide(JSON.parse(body) as Json, res, req))
})

function model(store: string, name: string, implementation: string | undefined, extra: object): string {
  const folder = join(store, name)
  mkdirSync(folder, { recursive: true })
  writeFileSync(
    join(folder, 'model-settings.json'),
    JSON.stringify({ name, implementation, parameters: { extra } }),
  )
  return folder
}

beforeAll(async () => {
  provider.listen(0, '127.0.0.1')
  await once(provider, 'listening')
  const { port } = provider.address() as AddressInfo
  const store = tempDir()
  const local = model(store, 'near', 'mlserver_llm_local.runtime.Local', {
    backend: 'transformers',
    config: { model_type: 'chat.completions', model_settings: { model: 'model.gguf', max_model_len: 512 } },
  })
  symlinkSync(GGUF, join(local, 'model.gguf'))
  model(store, 'far', 'mlserver_llm_api.LLMRuntime', {
    provider_id: 'openai',
    config: { model_id: 'up-1', model_type: 'chat.completions', base_url: `http://127.0.0.1:${port}/v1` },
  })
  writeFileSync(join(model(store, 'both', undefined, {}), 'handler.mjs'), BOTH)
  server = await startServer({
    models: ['all'],
    modelStore: store,
    config: { open_inference_grpc_port: 0, triton_grpc_port: 0, default_workers_per_model: 1 },
  })
  for (const name of ['near', 'far', 'both']) await server.ready(name)
  mlserver = inferenceV2Client(server.ports.openInference, 'mlserver')
  triton = inferenceV2Client(server.ports.triton, 'triton')
})

afterAll(() => {
  mlserver.close()
  triton.close()
  provider.closeAllConnections()
  provider.close()
})

const post = (path: string, body: object): Promise<Response> =>
  fetch(`http://127.0.0.1:${server.ports.inference}${path}`, { method: 'POST', body: JSON.stringify(body) })

const tensor = (name: string, data: string[]) => ({ name, shape: [data.length, 1], datatype: 'BYTES', data })

const REQUEST = {
  id: 'seven',
  inputs: [tensor('role', ['user']), tensor('content', [MESSAGES[0]!.content]), tensor('type', ['text'])],
  parameters: { llm_parameters: SURE, kwargs: SURE },
}

/** The same as a message of gRPC. */
function message(name: string, tensors: { name: string; data: string[] }[] = REQUEST.inputs): Message {
  const inputs = tensors.map((each) => ({
    ...tensor(each.name, each.data),
    contents: { bytes_contents: each.data.map((text) => Buffer.from(text)) },
  }))
  const llm = { string_param: JSON.stringify(SURE) }
  return { model_name: name, id: 'seven', inputs, parameters: { llm_parameters: llm, kwargs: llm } }
}

interface Output {
  name: string
  shape: unknown[]
  data: string[]
  contents: { bytes_contents: Buffer[] }
}

/** The texts of a response, REST's or gRPC's, by the names of its outputs. */
function texts(response: unknown): Record<string, string> {
  expect(response).toMatchObject({ id: 'seven', model_name: expect.stringMatching(/./) })
  return Object.fromEntries(
    (response as { outputs: Output[] }).outputs.map(({ name, shape, data, contents }) => {
      expect(shape.map(Number)).toEqual([1, 1])
      return [name, data?.[0] ?? contents.bytes_contents[0]!.toString()]
    }),
  )
}

interface Whole {
  object: string
  choices: { message: { content: string }; delta: { content?: string }; finish_reason: string | null }[]
}

/** Deltas, one per chunk, that together equal a unary response. */
function expectStream(responses: unknown[], whole: string): void {
  const read = responses.map(texts)
  expect(read.length).toBeGreaterThan(3)
  expect(read.map(({ content }) => content).join('')).toBe(whole)
  const chunks = read.map(({ output_all: all }) => JSON.parse(all!) as Whole)
  expect(new Set(chunks.map(({ object }) => object))).toEqual(new Set(['chat.completion.chunk']))
  expect(chunks.map(({ choices }) => choices[0]!.delta.content ?? '').join('')).toBe(whole)
  expect(chunks.filter(({ choices }) => choices[0]!.finish_reason !== null)).toHaveLength(1)
}

describe('a GGUF of the local runtime', () => {
  let said: string

  beforeAll(async () => {
    const answer = await post('/v1/chat/completions', { model: 'near', messages: MESSAGES, ...SURE })
    said = ((await answer.json()) as Whole).choices[0]!.message.content
    expect(said.length).toBeGreaterThan(10)
  })

  test('answers tensors over REST as it answers the OpenAI API', async () => {
    const { output_all: all, ...answer } = texts(await (await post('/v2/models/near/infer', REQUEST)).json())
    expect(answer).toEqual({ role: 'assistant', content: said, type: 'text' })
    expect(JSON.parse(all!)).toMatchObject({ object: 'chat.completion', usage: { completion_tokens: 12 } })
  })

  test.each(['infer_stream', 'versions/1.0/generate_stream'])('streams them: %s', async (path) => {
    const response = await post(`/v2/models/near/${path}`, REQUEST)
    expect(response.headers.get('content-type')).toContain('text/event-stream')
    const text = await response.text()
    expect(text).toMatch(/\n\n$/)
    expectStream(events(text), said)
  })

  test('answers them over gRPC: ModelInfer, and streams in both shapes', async () => {
    const answer: Message = await call(mlserver, mlserver['ModelInfer']!, message('near'))
    expect(texts(answer)['content']).toBe(said)
    const streams = [mlserver, triton].map(async (client) => {
      const duplex = client.ModelStreamInfer()
      duplex.write(message('near'))
      duplex.end()
      const { messages, error } = await readAll(duplex)
      expect(error).toBeUndefined()
      return messages
    })
    const [plain, decoupled] = await Promise.all(streams)
    expectStream(plain!, said)
    expectStream(
      decoupled!.map((each) => each['infer_response']),
      said,
    )
  })

  test('makes embeddings, and answers the generate extension', async () => {
    const body = { inputs: [tensor('input', ['one', 'two'])] }
    const { outputs } = (await (await post('/v2/models/near/infer', body)).json()) as {
      outputs: { name: string; shape: number[]; data: number[] }[]
    }
    const { shape, data } = outputs[0]!
    expect([outputs[0]!.name, shape[0], data.length]).toEqual(['embedding', 2, shape[0]! * shape[1]!])
    const asked = { text_input: 'In the beginning', parameters: { max_tokens: 4, temperature: 0 } }
    const generated = (await (await post('/v2/models/near/generate', asked)).json()) as Json
    const plain = { model: 'near', prompt: asked.text_input, ...asked.parameters }
    const completion = (await (await post('/v1/completions', plain)).json()) as {
      choices: { text: string }[]
    }
    expect(generated['text_output']).toBe(completion.choices[0]!.text)
  })

  test('has paths of the OpenAI API below its own, with a version or without', async () => {
    for (const path of ['infer', 'versions/1.0/infer_stream']) {
      const response = await post(`/v2/models/near/${path}/chat/completions`, { messages: MESSAGES, ...SURE })
      expect(((await response.json()) as Whole).choices[0]!.message.content).toBe(said)
    }
  })

  test('says with 422 what it cannot do, also as a stream', async () => {
    const long = [tensor('role', ['user']), tensor('content', ['word '.repeat(3_000)])]
    const response = await post('/v2/models/near/infer_stream', { inputs: long })
    expect([response.status, await response.json()]).toEqual([
      422,
      { error: expect.stringContaining('must fit into the context of 512 tokens') },
    ])
  })

  test('says in its log what it does not follow', async () => {
    await server.lines('backend transformers is replaced by node-llama-cpp')
  })
})

describe('a model of the API runtime', () => {
  const chunk = (content: string, finish: string | null = null) => ({
    id: 'up',
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta: { role: 'assistant', content }, finish_reason: finish }],
  })

  test('gets the request of the tensors, and its answer comes back whole beside them', async () => {
    const seen: Json[] = []
    const answer = {
      id: 'up',
      object: 'chat.completion',
      extra: 1,
      choices: [{ index: 0, message: { role: 'assistant', content: 'Ho' } }],
    }
    provide = (body, res) => {
      seen.push(body)
      res.end(JSON.stringify(answer))
    }
    const got = texts(await (await post('/v2/models/far/infer', REQUEST)).json())
    expect(got['content']).toBe('Ho')
    expect(JSON.parse(got['output_all']!)).toMatchObject(answer)
    expect(seen).toEqual([{ model: 'up-1', messages: MESSAGES, ...SURE, stream: false }])
  })

  test('streams, and a client of gRPC that leaves ends the request there', async () => {
    const left = new Promise<void>((resolve) => {
      provide = (_body, res) => {
        res.writeHead(200, { 'content-type': 'text/event-stream' })
        res.write(`data: ${JSON.stringify(chunk('one'))}\n\n`)
        res.once('close', () => resolve())
      }
    })
    const duplex = mlserver.ModelStreamInfer()
    const ended = readAll(duplex)
    duplex.once('data', (first) => {
      expect(texts(first)['content']).toBe('one')
      duplex.cancel()
    })
    duplex.write(message('far'))
    await left
    await ended
  })
})

describe('a handler with handle, predict and methods of the OpenAI API', () => {
  test('is asked by each API in its own way; tensors of a chat are tensors to it', async () => {
    const chat = await post('/v1/chat/completions', { model: 'both', messages: MESSAGES })
    expect(((await chat.json()) as Whole).choices[0]!.message.content).toBe('1')
    for (const path of ['infer', 'versions/1.0/infer', 'generate'])
      expect(texts(await (await post(`/v2/models/both/${path}`, REQUEST)).json())).toEqual({ count: '3' })
    expect(await (await post('/predictions/both', REQUEST)).text()).toBe('handled body')
    expect(await (await post('/v1/models/both:predict', REQUEST)).text()).toBe('handled body')
    const completion = await post('/v1/completions', { model: 'both', prompt: 'x' })
    expect(((await completion.json()) as { choices: { text: string }[] }).choices[0]!.text).toBe(
      'handled data,parameters',
    )
  })
})

test('a model that only variables describe is served', async () => {
  const folder = tempDir()
  symlinkSync(GGUF, join(folder, 'any.gguf'))
  const alone = await startServer({
    models: ['all'],
    modelStore: folder,
    config: { default_workers_per_model: 1 },
    env: {
      MLSERVER_MODEL_NAME: 'alone',
      MLSERVER_MODEL_IMPLEMENTATION: 'mlserver_llm_local.runtime.Local',
      MLSERVER_MODEL_URI: folder,
      MLSERVER_MODEL_EXTRA: '{"config":{"model_settings":{"max_tokens":5}}}',
    },
  })
  await alone.ready('alone')
  const response = await fetch(`http://127.0.0.1:${alone.ports.inference}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ model: 'alone', messages: MESSAGES, temperature: 0 }),
  })
  expect(await response.json()).toMatchObject({ model: 'alone', usage: { completion_tokens: 5 } })
})
