import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Metadata, status as Status } from '@grpc/grpc-js'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { COUNT, ECHO } from '../support/count.ts'
import {
  call,
  inferenceV2Client,
  readAll,
  type GrpcDuplex,
  type GrpcError,
  type Message,
} from '../support/grpc-clients.ts'
import { modelFolder } from '../support/model-folder.ts'
import { REPOSITORY, startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

let server: Server
let mlserver: ReturnType<typeof inferenceV2Client>
let triton: ReturnType<typeof inferenceV2Client>
const store = tempDir()
const DECLARED = modelFolder('declared', 'tensors', {
  openInference: { inputs: [{ name: 'text', datatype: 'BYTES', shape: [1] }] },
})
const HANDLER = join(REPOSITORY, 'tests', 'support', 'handlers', 'tensors', 'handler.ts')

beforeAll(async () => {
  folder('stored', {
    implementation: 'model.Tensors',
    parameters: { version: '3' },
    inputs: [{ name: 'x', datatype: 'FP32', shape: [1] }],
    max_batch_size: 4,
    max_batch_time: 0.2,
  })
  server = await startServer({
    models: [modelFolder('tensors', 'tensors', {}), DECLARED, ECHO, COUNT],
    modelStore: store,
    config: { open_inference_grpc_port: 0, triton_grpc_port: 0, default_workers_per_model: 2 },
  })
  await Promise.all([
    server.ready('tensors'),
    server.ready('declared'),
    server.ready('echo'),
    server.ready('count'),
  ])
  mlserver = inferenceV2Client(server.ports.openInference, 'mlserver')
  triton = inferenceV2Client(server.ports.triton, 'triton')
})

afterAll(() => {
  mlserver.close()
  triton.close()
})

/** A model of the store as MLServer has them. */
function folder(name: string, settings: object): void {
  mkdirSync(join(store, name))
  writeFileSync(join(store, name, 'model-settings.json'), JSON.stringify({ name, ...settings }))
  writeFileSync(join(store, name, 'model.ts'), `export { Tensors } from ${JSON.stringify(HANDLER)}\n`)
}

async function post(path: string, value: object): Promise<Response> {
  return fetch(`http://127.0.0.1:${server.ports.inference}${path}`, {
    method: 'POST',
    body: JSON.stringify(value),
  })
}

const text = (words: string) => ({ name: 'text', shape: [1], datatype: 'BYTES', data: [words] })

interface Output {
  name: string
  data: unknown[]
}

async function outputs(response: Response): Promise<Record<string, unknown[]>> {
  expect(response.status).toBe(200)
  const { outputs: list } = (await response.json()) as { outputs: Output[] }
  return Object.fromEntries(list.map(({ name, data }) => [name, data]))
}

/** A message of gRPC with one text. */
function message(words: string, parameters: Record<string, object> = {}, over: Message = {}): Message {
  const contents = { bytes_contents: [Buffer.from(words)] }
  const inputs = [{ name: 'text', shape: [1], datatype: 'BYTES', contents }]
  return { model_name: 'tensors', id: 'i', inputs, parameters, ...over }
}

function words(got: Message): string {
  const [output] = got['outputs'] as { contents: { bytes_contents: Buffer[] } }[]
  return output!.contents.bytes_contents.toString()
}

async function stream(
  client: typeof mlserver,
  ...messages: Message[]
): Promise<{ messages: Message[]; error?: GrpcError }> {
  const duplex = client.ModelStreamInfer()
  for (const each of messages) duplex.write(each)
  duplex.end()
  return readAll(duplex)
}

/** The next message of a stream that goes on. */
function next(duplex: GrpcDuplex<Message, Message>): Promise<Message> {
  return new Promise((resolve, reject) => {
    duplex.once('data', (got) => resolve(got as Message))
    duplex.once('error', (error) => reject(new Error('The stream failed', { cause: error })))
    duplex.resume()
  })
}

describe('REST', () => {
  test('64 bits, 16 bits and bytes that are no text go through a handler unchanged', async () => {
    const inputs = [
      { name: 'wide', shape: [2], datatype: 'INT64', data: ['9007199254740993', -1] },
      { name: 'half', shape: [2], datatype: 'FP16', data: [0.5, -2] },
      { name: 'flag', shape: [2], datatype: 'BOOL', data: [true, false] },
    ]
    const response = await post('/v2/models/tensors/infer', { inputs })
    expect(await response.text()).toContain('"data":[9007199254740993,-1]')
    const got = await outputs(await post('/v2/models/tensors/infer', { inputs: inputs.slice(1) }))
    expect(got).toEqual({ half: [0.5, -2], flag: [true, false] })
  })

  test('a shape of -1, or a number, is that of the data; the same over gRPC', async () => {
    const image = { name: 'image', shape: [-1], datatype: 'BYTES', data: ['iVBORw0KGgo='] }
    const inputs = [image, { name: 'ids', shape: 2, datatype: 'INT64', data: [101, 102] }]
    for (const model of ['tensors', 'echo']) {
      const response = await post(`/v2/models/${model}/versions/1.0/infer`, { inputs })
      expect([model, response.status]).toEqual([model, 200])
      if (model === 'echo') continue
      expect(await response.json()).toMatchObject({ outputs: [{ shape: [1] }, { shape: [2] }] })
    }
    const ids = { name: 'ids', shape: [-1, 2], datatype: 'INT32' }
    const typed = { ...ids, contents: { int_contents: [1, 2, 3, 4] } }
    const raw = { inputs: [ids], raw_input_contents: [Buffer.alloc(16)] }
    for (const sent of [{ inputs: [typed] }, raw]) {
      const got: Message = await call(mlserver, mlserver['ModelInfer']!, message('', {}, sent))
      const [output] = got['outputs'] as { shape: unknown[] }[]
      expect(output!.shape.map(Number)).toEqual([2, 2])
    }
    const wrong = message('', {}, { inputs: [{ ...typed, shape: [-1, 3] }] })
    await expect(call(mlserver, mlserver['ModelInfer']!, wrong)).rejects.toMatchObject({
      code: Status.INVALID_ARGUMENT,
      details: 'Tensor ids cannot be used: data of 4 elements does not match shape [-1,3]',
    })
  })

  test('content types are decoded: texts, base64, dates, numbers', async () => {
    const inputs = [
      { ...text('aGk='), name: 'b', parameters: { content_type: 'base64' } },
      { ...text('2020-01-02'), name: 'd', parameters: { content_type: 'datetime' } },
      { ...text('é'), name: 's' },
      { name: 'n', shape: [2], datatype: 'INT64', data: [1, 2] },
    ]
    const got = await outputs(
      await post('/v2/models/tensors/infer', { inputs, parameters: { kind: 'decoded' } }),
    )
    const read = (name: string) => JSON.parse(got[name]![0] as string) as unknown
    expect(read('b')).toEqual([{ type: 'Buffer', data: [...Buffer.from('hi')] }])
    expect(read('d')).toEqual(['2020-01-02T00:00:00.000Z'])
    expect(read('s')).toEqual(['é'])
    expect(read('n')).toEqual({ shape: [2], data: { 0: '1n', 1: '2n' } })
    const wrong = [{ ...text('no date'), parameters: { content_type: 'datetime' } }]
    const refused = await post('/v2/models/tensors/infer', { inputs: wrong, parameters: { kind: 'decoded' } })
    expect([refused.status, await refused.json()]).toEqual([
      422,
      { error: 'Input text must contain only ISO 8601 dates' },
    ])
  })

  test('outputs that the client names are all that it gets; one that is not there is an error', async () => {
    const inputs = [text('a'), { ...text('b'), name: 'other' }]
    const ask = (name: string) => post('/v2/models/tensors/infer', { inputs, outputs: [{ name }] })
    expect(await outputs(await ask('other'))).toEqual({ other: ['b'] })
    expect((await ask('none')).status).toBe(422)
  })

  test.each([
    [{ fail: 'throw' }, 500, 'on purpose'],
    [{ status: 418 }, 418, 'of my own'],
    [
      { kind: 'wrong' },
      500,
      'The inference response of the handler is not valid: Tensor x cannot be used: data must have 3 elements to match shape, not 2',
    ],
  ])('what goes wrong in a handler: %j', async (parameters, status, error) => {
    const response = await post('/v2/models/tensors/infer', { inputs: [], parameters })
    expect([response.status, await response.json()]).toEqual([status, { error }])
  })

  test('with two workers and gzip asked for, the first event is there before the handler made its last', async () => {
    const controller = new AbortController()
    const body = JSON.stringify({ inputs: [text('one two three four')], parameters: { pause: 60_000 } })
    const url = `http://127.0.0.1:${server.ports.inference}/v2/models/tensors/infer_stream`
    const headers = { 'accept-encoding': 'gzip' }
    const response = await fetch(url, { method: 'POST', body, headers, signal: controller.signal })
    const { value } = await response.body!.getReader().read()
    expect(Buffer.from(value).toString()).toMatch(/^data: .*"data":\["one "\].*\n\n$/)
    expect(
      await server.until(
        () => server.metric('torchserve_ts_open_streams'),
        (open) => open === 1,
      ),
    ).toBe(1)
    controller.abort()
    await server.until(
      () => server.metric('torchserve_ts_open_streams'),
      (open) => open === 0,
    )
  })

  test('while streams of a model run, others are answered', async () => {
    const held = inferenceV2Client(server.ports.openInference, 'mlserver').ModelStreamInfer()
    held.on('error', () => undefined)
    const streams = Array.from({ length: 4 }, () => {
      const duplex = mlserver.ModelStreamInfer()
      duplex.on('error', () => undefined)
      duplex.write(message('one two', { pause: { int64_param: 60_000 } }))
      return duplex
    })
    expect((await Promise.all(streams.map(next))).map(words)).toEqual(Array(4).fill('one '))
    expect(await outputs(await post('/v2/models/tensors/infer', { inputs: [text('a')] }))).toEqual({
      text: ['a'],
    })
    for (const duplex of [...streams, held]) duplex.cancel()
  })

  test('TorchServe’s routes reach a handler of tensors: text in, chunks out', async () => {
    const url = `http://127.0.0.1:${server.ports.inference}/predictions/tensors`
    const headers = { 'content-type': 'text/plain' }
    const response = await fetch(url, { method: 'POST', body: 'one two', headers })
    expect([response.status, await response.text()]).toEqual([200, 'one two'])
  })
})

describe('gRPC as MLServer has it', () => {
  test('unary: typed and raw contents, each answered in kind', async () => {
    const contents = { int64_contents: ['9223372036854775807', '-1'] }
    const typed = { name: 'x', shape: [2], datatype: 'INT64', contents }
    const got = await call(mlserver, mlserver['ModelInfer']!, message('', {}, { inputs: [typed] }))
    expect(got).toMatchObject({ model_name: 'tensors', id: 'i' })
    const [output] = (got as Message)['outputs'] as { contents: { int64_contents: unknown[] } }[]
    expect(output!.contents.int64_contents.map(String)).toEqual(contents.int64_contents)
    const raw = Buffer.from('01000000000200000000ff', 'hex')
    const bytes = { name: 'b', shape: [2], datatype: 'BYTES' }
    const asked = message(
      '',
      {},
      { inputs: [bytes], raw_input_contents: [Buffer.concat([raw, Buffer.alloc(0)])] },
    )
    const answer = await call(mlserver, mlserver['ModelInfer']!, asked)
    expect(answer).toMatchObject({ outputs: [{ contents: null }], raw_output_contents: [raw] })
  })

  test('FP16 and BF16 have only the raw form', async () => {
    const got = await call(
      mlserver,
      mlserver['ModelInfer']!,
      message('', { kind: { string_param: 'halves' } }),
    )
    expect(got).toMatchObject({ outputs: [{ datatype: 'FP16' }, { datatype: 'BF16' }] })
    expect(((got as Message)['raw_output_contents'] as Buffer[]).map((raw) => raw.toString('hex'))).toEqual([
      '003e00c0',
      'c03f00c0',
    ])
  })

  test('one request, a stream of responses; several requests, one response', async () => {
    const many = await stream(mlserver, message('one two '))
    expect(many.messages.map(words)).toEqual(['one ', 'two '])
    const collect = { collect: { bool_param: true } }
    const one = await stream(mlserver, ...['a', 'b', 'c'].map((word) => message(word, collect)))
    expect([one.error, one.messages.map(words)]).toEqual([undefined, ['a+b+c']])
  })

  test('requests and responses in turns, over one request of the handler', async () => {
    const duplex = mlserver.ModelStreamInfer()
    for (const word of ['a', 'b', 'c']) {
      duplex.write(message(word))
      expect(words(await next(duplex))).toBe(word)
    }
    duplex.end()
    expect((await readAll(duplex)).messages).toEqual([])
  })

  test('more requests than may wait with the worker all arrive', async () => {
    const sent = Array.from({ length: 50 }, (_, i) =>
      message(`${i}`.padEnd(50_000, '.'), { collect: { bool_param: true } }),
    )
    const { messages, error } = await stream(mlserver, ...sent)
    expect(error).toBeUndefined()
    expect(words(messages[0]!)).toHaveLength(50 * 50_000 + 49)
  })

  test('a handler of TorchServe answers each message by itself, in their order', async () => {
    const { messages } = await stream(
      mlserver,
      ...['a', 'b'].map((word) => message(word, {}, { model_name: 'echo', id: word })),
    )
    expect(messages.map((each) => [each['id'], words(each)])).toEqual([
      ['a', 'a'],
      ['b', 'b'],
    ])
  })

  test('a stream of a handler of TorchServe is over before the next message is asked', async () => {
    const runs = ['a', 'b', 'c'].map((id) =>
      message(JSON.stringify({ n: 3 }), {}, { model_name: 'count', id }),
    )
    const { messages, error } = await stream(mlserver, ...runs)
    const items = ['a', 'b', 'c'].flatMap((id) => ['1\n', '2\n', '3\n'].map((item) => [id, item]))
    expect([error, messages.map((each) => [each['id'], words(each)])]).toEqual([undefined, items])
  })

  test.each<[string, Message | undefined, number, number]>([
    ['an unknown model', message('a', {}, { model_name: 'none' }), Status.NOT_FOUND, 0],
    [
      'a wrong shape',
      message(
        'a',
        {},
        { inputs: [{ name: 'x', shape: [3], datatype: 'INT8', contents: { int_contents: [1] } }] },
      ),
      Status.INVALID_ARGUMENT,
      0,
    ],
    [
      'a failure before the first response',
      message('a b', { fail: { string_param: 'a' } }),
      Status.FAILED_PRECONDITION,
      0,
    ],
    ['a failure after it', message('a b', { fail: { string_param: 'b' } }), Status.FAILED_PRECONDITION, 1],
    ['no request at all', undefined, Status.INVALID_ARGUMENT, 0],
  ])('%s ends the stream with its status', async (_what, sent, code, before) => {
    const { messages, error } = await stream(mlserver, ...(sent === undefined ? [] : [sent]))
    expect([messages.length, error?.code]).toEqual([before, code])
  })

  test('cancelling, or a deadline, stops the handler', async () => {
    const duplex = mlserver.ModelStreamInfer()
    const ended = readAll(duplex)
    const stops = (): number => server.output.filter((line) => line.includes('stopped after')).length
    const before = stops()
    duplex.write(message('word '.repeat(10_000), { pause: { int64_param: 20 } }))
    duplex.once('data', () => duplex.cancel())
    expect((await ended).error?.code).toBe(Status.CANCELLED)
    await server.until(
      () => Promise.resolve(stops()),
      (count) => count > before,
    )
    const late = mlserver.ModelStreamInfer({ deadline: Date.now() + 300 })
    late.write(message('one two', { pause: { int64_param: 60_000 } }))
    expect((await readAll(late)).error?.code).toBe(Status.DEADLINE_EXCEEDED)
  })

  test('metadata, readiness, index', async () => {
    expect(await call(mlserver, mlserver['ServerLive']!, {})).toEqual({ live: true })
    expect(await call(mlserver, mlserver['ModelReady']!, { name: 'tensors' })).toEqual({ ready: true })
    await expect(call(mlserver, mlserver['ModelReady']!, { name: 'none' })).rejects.toMatchObject({
      code: Status.NOT_FOUND,
    })
    const index: Message = await call(mlserver, mlserver['RepositoryIndex']!, {})
    expect(index['models']).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ name: 'tensors', version: '1.0', state: 'READY' }),
        expect.objectContaining({ name: 'stored', state: 'UNAVAILABLE' }),
      ]),
    )
  })
})

describe('gRPC as Triton has it', () => {
  const final = (got: Message) =>
    (got['infer_response'] as { parameters: Record<string, { bool_param: boolean }> }).parameters[
      'triton_final_response'
    ]!.bool_param
  const idOf = (got: Message) => (got['infer_response'] as { id: string }).id

  test('requests of one stream run beside each other; each error is a message, and the stream ends well', async () => {
    const wantsFinal = { triton_enable_empty_final_response: { bool_param: true } }
    const { messages, error } = await stream(
      triton,
      message('one two', wantsFinal, { id: 'a' }),
      message('x', { fail: { string_param: 'x' } }, { id: 'b' }),
      message('x', {}, { id: 'c', model_name: 'none' }),
      message('said', {}, { id: 'd', model_name: 'echo' }),
    )
    expect(error).toBeUndefined()
    const of = (id: string) => messages.filter((each) => idOf(each) === id)
    expect(of('a').map(final)).toEqual([false, false, true])
    expect(of('b').map((each) => [each['error_message'], final(each)])).toEqual([['Failed at x', true]])
    expect(of('c').map((each) => each['error_message'])).toEqual(['Model not found: none'])
    expect(of('d').map((each) => [words(each['infer_response'] as Message), final(each)])).toEqual([
      ['said', true],
    ])
  })

  test('metadata, or what only its clients send, ask for the shape of Triton on the other listener', async () => {
    const client = inferenceV2Client(server.ports.openInference, 'triton')
    const metadata = new Metadata()
    metadata.set('x-stream-shape', 'triton')
    const said = client.ModelStreamInfer(metadata)
    said.write(message('a'))
    said.end()
    const shown = await stream(
      client,
      message('b', { triton_enable_empty_final_response: { bool_param: true } }),
    )
    const both = [...(await readAll(said)).messages, ...shown.messages]
    expect(both.map((each) => [each['error_message'], final(each)])).toEqual([
      ['', false],
      ['', false],
      ['', true],
    ])
    client.close()
  })

  test('with triton_grpc_error the first error ends the stream', async () => {
    const metadata = new Metadata()
    metadata.set('triton_grpc_error', 'true')
    const duplex = triton.ModelStreamInfer(metadata)
    duplex.write(message('a', {}, { model_name: 'none' }))
    expect((await readAll(duplex)).error?.code).toBe(Status.NOT_FOUND)
  })
})

describe('a message that contradicts the inputs that its model declares', () => {
  const number = { name: 'text', shape: [1], datatype: 'INT32', contents: { int_contents: [1] } }
  const wrong = message('', {}, { model_name: 'declared', inputs: [number] })
  const right = message('word', {}, { model_name: 'declared' })
  const details = 'Input "text" must be BYTES [1], but the request has INT32 [1]'

  test('is INVALID_ARGUMENT and names both', async () => {
    const refused = { code: Status.INVALID_ARGUMENT, details }
    await expect(call(mlserver, mlserver['ModelInfer']!, wrong)).rejects.toMatchObject(refused)
    expect(words(await call(mlserver, mlserver['ModelInfer']!, right))).toBe('word')
  })

  test('ends a stream of MLServer, as its first message and later', async () => {
    for (const sent of [[wrong], [right, wrong]]) {
      const { error } = await stream(mlserver, ...sent)
      expect(error).toMatchObject({ code: Status.INVALID_ARGUMENT, details })
    }
  })

  test('is an error message in a stream of Triton, which goes on', async () => {
    const { messages, error } = await stream(triton, wrong, right)
    expect(error).toBeUndefined()
    const errors = messages.map((each) => each['error_message'])
    expect(errors.toSorted()).toEqual(['', details])
  })
})

describe('a model folder of MLServer', () => {
  test('is loaded by name, batches what comes together, tells one bad request apart, and is unloaded', async () => {
    expect((await post('/v2/repository/models/stored/load', {})).status).toBe(200)
    const rows = (...data: number[]) =>
      post('/v2/models/stored/infer', {
        inputs: [{ name: 'x', shape: [data.length, 1], datatype: 'FP64', data }],
        parameters: { kind: 'rows' },
      })
    const [a, b] = await Promise.all([rows(1), rows(2, 3)].map(async (asked) => outputs(await asked)))
    expect([a, b]).toMatchObject([
      { doubled: [2], together: [3] },
      { doubled: [4, 6], together: [3, 3] },
    ])
    const { inputs } = { inputs: [{ name: 'x', shape: [1, 1], datatype: 'FP64', data: [null] }] }
    const bad = post('/v2/models/stored/infer', { inputs, parameters: { kind: 'rows' } })
    expect(await outputs(await rows(5))).toMatchObject({ doubled: [10] })
    expect((await bad).status).toBe(422)
    const metadata = await fetch(`http://127.0.0.1:${server.ports.inference}/v2/models/stored`)
    // Reported, but no request above matches it.
    const inputs32 = [{ name: 'x', datatype: 'FP32', shape: [1] }]
    expect(await metadata.json()).toMatchObject({ name: 'stored', versions: ['3'], inputs: inputs32 })
    expect((await post('/v2/repository/models/stored/load', {})).status).toBe(200)
    expect(await outputs(await rows(5))).toMatchObject({ doubled: [10] })
    expect((await post('/v2/repository/models/stored/unload', {})).status).toBe(200)
    expect((await rows(1)).status).toBe(404)
    expect((await post('/v2/repository/models/none/load', {})).status).toBe(404)
  })
})
