import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { status as Status, type Metadata } from '@grpc/grpc-js'
import { version } from '../../../frontend/package-info.ts'
import { call, openInferenceClient, type Message } from '../../support/grpc-clients.ts'
import { failure, startGrpc, token, type RunningGrpc } from '../../edge/grpc/start-grpc.ts'

let grpc: RunningGrpc
let client: ReturnType<typeof openInferenceClient>

beforeEach(async () => {
  grpc = await startGrpc({ openInferenceProtocol: true })
  client = openInferenceClient(grpc.port)
})

afterEach(async () => {
  client.close()
  await grpc.close()
})

function ask(rpc: string, request: Message = {}, ...options: unknown[]): Promise<Message> {
  return call(client, client[rpc]!, request, ...options)
}

/** What the handler of `m` got as its one part. */
function seen(): { type: string | undefined; text: string; json: Message } {
  const [part, ...more] = grpc.models.works.at(-1)!.parts
  expect([part!.name, more]).toEqual(['body', []])
  const text = Buffer.from(part!.data).toString()
  return { type: part!.contentType, text, json: JSON.parse(text) as Message }
}

const REPLY = { id: 'r', model_name: 'm', model_version: '1.0', outputs: [] as Message[] }

function reply(value: unknown): void {
  grpc.models.onWork = (work) => work.respond(typeof value === 'string' ? value : JSON.stringify(value))
}

function infer(request: Message, ...options: unknown[]): Promise<Message> {
  return ask('ModelInfer', { model_name: 'm', ...request }, ...options)
}

describe('the server and its models', () => {
  test('live, ready, metadata', async () => {
    expect(await ask('ServerLive')).toEqual({ live: true })
    expect(await ask('ServerReady')).toEqual({ ready: true })
    grpc.models.healthy = false
    expect(await ask('ServerReady')).toEqual({ ready: false })
    const extensions = ['kserve', 'kubeflow']
    expect(await ask('ServerMetadata')).toEqual({ name: 'Torchserve', version, extensions })
  })

  test('a model is ready when a worker has loaded it', async () => {
    expect(await ask('ModelReady', { name: 'ready' })).toEqual({ ready: true })
    expect(await ask('ModelReady', { name: 'loading' })).toEqual({ ready: false })
  })

  test('metadata names the versions', async () => {
    expect(await ask('ModelMetadata', { name: 'ready' })).toMatchObject({
      name: 'ready',
      versions: ['1.0', '2.0'],
      platform: '',
    })
  })

  test.each([
    ['ModelReady', {}, Status.INTERNAL, 'Parameter name is required.\nBadRequestException.()'],
    ['ModelMetadata', {}, Status.INTERNAL, 'Parameter model_name is required.\nBadRequestException.()'],
    ['ModelReady', { name: 'none' }, Status.NOT_FOUND, 'Model not found: none'],
    ['ModelMetadata', { name: 'none' }, Status.NOT_FOUND, 'Model not found: none'],
    ['ModelInfer', { model_name: 'none' }, Status.INTERNAL, 'Model not found: none'],
    ['ModelInfer', {}, Status.INTERNAL, 'Parameter model_name is required.\nBadRequestException.()'],
  ])('%s of %j fails', async (rpc, request, code, details) => {
    const error = await failure(ask(rpc, request))
    expect([error.code, error.details.startsWith(details)]).toEqual([code, true])
  })

  test.each(['ServerLive', 'ServerReady', 'ServerMetadata', 'ModelReady', 'ModelMetadata', 'ModelInfer'])(
    '%s needs the inference token',
    async (rpc) => {
      grpc.authorizer.enabled = true
      reply(REPLY)
      const request = { name: 'ready', model_name: 'ready' }
      expect((await failure(ask(rpc, request))).code).toBe(Status.PERMISSION_DENIED)
      expect((await failure(ask(rpc, request, token('management')))).code).toBe(Status.PERMISSION_DENIED)
      await ask(rpc, request, token('inference'))
    },
  )
})

describe('the request that a handler gets from ModelInfer', () => {
  test('is one JSON body', async () => {
    reply(REPLY)
    await infer({
      id: 'a"b',
      parameters: {
        n: { int64_param: '9007199254740993' },
        on: { bool_param: true },
        s: { string_param: 'x' },
      },
      inputs: [
        { name: 'x', datatype: 'INT32', shape: [2, 1], contents: { int_contents: [1, -2] } },
        { name: 'y', datatype: 'BYTES', shape: [1], contents: { bytes_contents: [Buffer.from('hé')] } },
      ],
      outputs: [{ name: 'z', parameters: { top: { int64_param: 3 } } }],
    })
    const { type, text, json } = seen()
    expect(type).toBe('application/json')
    expect(text).toContain('"parameters":{"n":9007199254740993,"on":true,"s":"x"}')
    expect(json).toMatchObject({
      id: 'a"b',
      model_name: 'm',
      inputs: [
        { name: 'x', shape: [2, 1], datatype: 'INT32', data: [1, -2] },
        { name: 'y', shape: [1], datatype: 'BYTES', data: [Buffer.from('hé').toString('base64')] },
      ],
      outputs: [{ name: 'z', parameters: { top: 3 } }],
    })
  })

  test.each([
    ['BOOL', { bool_contents: [true, false] }, 'true,false'],
    ['INT8', { int_contents: [-128, 127] }, '-128,127'],
    ['INT16', { int_contents: [-5] }, '-5'],
    ['INT64', { int64_contents: ['9223372036854775807', '-1'] }, '9223372036854775807,-1'],
    ['UINT8', { uint_contents: [255] }, '255'],
    ['UINT32', { uint_contents: [4294967295] }, '4294967295'],
    ['UINT64', { uint64_contents: ['18446744073709551615'] }, '18446744073709551615'],
    ['FP32', { fp32_contents: [0.5, -1.25] }, '0.5,-1.25'],
    ['FP64', { fp64_contents: [0.1] }, '0.1'],
  ])('%s contents keep their value', async (datatype, contents, data) => {
    reply(REPLY)
    await infer({ inputs: [{ name: 'x', datatype, shape: [1], contents }] })
    expect(seen().text).toContain(`"data":[${data}]`)
  })

  test('an unknown datatype has no data', async () => {
    reply(REPLY)
    await infer({ inputs: [{ name: 'x', datatype: 'WHAT', shape: [1] }] })
    expect(seen().json).toMatchObject({ inputs: [{ name: 'x', shape: [1], datatype: 'WHAT' }] })
    expect(seen().text).not.toContain('data":')
  })

  test.each([
    ['BOOL', [2], '0100', 'true,false'],
    ['INT8', [2], 'ff7f', '-1,127'],
    ['INT16', [1], 'feff', '-2'],
    ['INT32', [2, 1], '0100000000000080', '1,-2147483648'],
    ['INT64', [1], 'ffffffffffffff7f', '9223372036854775807'],
    ['UINT8', [3], '0001ff', '0,1,255'],
    ['UINT16', [1], 'ffff', '65535'],
    ['UINT32', [1], 'ffffffff', '4294967295'],
    ['UINT64', [1], 'ffffffffffffffff', '18446744073709551615'],
    ['FP16', [4], '003c00c0ff7b0100', '1,-2,65504,5.960464477539063e-8'],
    ['BF16', [2], '803f40c0', '1,-3'],
    ['FP32', [1], '0000003f', '0.5'],
    ['FP64', [1], '000000000000e03f', '0.5'],
    ['BYTES', [2], '0200000068690000000000'.slice(0, 20), '"aGk=",""'],
    ['FP32', [0, 7], '', ''],
  ])('raw %s of shape %j: %s', async (datatype, shape, hex, data) => {
    reply(REPLY)
    // The second tensor starts at an odd place of the message.
    const odd = { name: 'odd', datatype: 'UINT8', shape: [1] }
    await infer({
      inputs: [odd, { name: 'x', datatype, shape }],
      raw_input_contents: [Buffer.from([7]), Buffer.from(hex, 'hex')],
    })
    expect(seen().text).toContain(
      `"name":"x","shape":[${shape.join(',')}],"datatype":"${datatype}","data":[${data}]`,
    )
  })

  test.each([
    ['too few raw contents', [{ name: 'x', datatype: 'INT8', shape: [1] }, { name: 'y' }], ['00']],
    ['bytes that do not fit the shape', [{ name: 'x', datatype: 'INT32', shape: [1] }], ['000000']],
    [
      'a shape beyond all numbers',
      [{ name: 'x', datatype: 'INT8', shape: Array(9).fill('9223372036854775807') }],
      ['00'],
    ],
    ['an unknown datatype', [{ name: 'x', datatype: 'WHAT', shape: [1] }], ['00']],
    ['a cut element', [{ name: 'x', datatype: 'BYTES', shape: [1] }], ['05000000aa']],
    ['a cut length', [{ name: 'x', datatype: 'BYTES', shape: [1] }], ['0500']],
    ['NaN', [{ name: 'x', datatype: 'FP32', shape: [1] }], ['0000c07f']],
  ])('raw contents are refused: %s', async (_what, inputs, raw) => {
    const request = { inputs, raw_input_contents: raw.map((hex) => Buffer.from(hex, 'hex')) }
    const error = await failure(infer(request))
    expect([error.code, grpc.models.works]).toEqual([Status.INVALID_ARGUMENT, []])
  })

  test('NaN in typed contents is refused', async () => {
    const inputs = [{ name: 'x', datatype: 'FP64', shape: [1], contents: { fp64_contents: [NaN] } }]
    expect((await failure(infer({ inputs }))).details).toContain('Tensor x cannot be used')
  })
})

describe('the answer of ModelInfer', () => {
  test('is made from the handler’s JSON', async () => {
    reply({
      ...REPLY,
      parameters: { n: 1, s: 'x', b: true },
      outputs: [
        { name: 'i', datatype: 'INT16', shape: [2], data: [1, -2] },
        { name: 'l', datatype: 'INT64', shape: [2], data: [1, '9223372036854775807'] },
        { name: 'f', datatype: 'FP32', shape: [2, 1], data: [[0.5], [2]] },
        { name: 'b', datatype: 'BOOL', shape: [1], data: [true] },
        { name: 's', datatype: 'BYTES', shape: [1], data: ['hé'] },
      ],
    })
    const answer = await infer({ id: 'mine' })
    expect(answer).toMatchObject({ id: 'r', model_name: 'm', model_version: '1.0' })
    expect(answer['parameters']).toMatchObject({ s: { string_param: 'x' }, b: { bool_param: true } })
    const outputs = answer['outputs'] as { name: string; contents: Record<string, unknown[]> }[]
    expect(outputs.map(({ name }) => name)).toEqual(['i', 'l', 'f', 'b', 's'])
    const [i, l, f, b, s] = outputs.map(({ contents }) => contents)
    expect([i!['int_contents'], f!['fp32_contents'], b!['bool_contents']]).toEqual([
      [1, -2],
      [0.5, 2],
      [true],
    ])
    expect(l!['int64_contents']!.map(String)).toEqual(['1', '9223372036854775807'])
    expect(s!['bytes_contents']).toEqual([Buffer.from('hé')])
  })

  test('is raw where a datatype has no other form', async () => {
    reply({ outputs: [{ name: 'h', datatype: 'FP16', shape: [2], data: [1, -2] }] })
    const answer = await infer({ id: 'mine' })
    expect(answer['raw_output_contents']).toEqual([Buffer.from('003c00c0', 'hex')])
  })

  test('takes from the request what the handler leaves out', async () => {
    reply({ outputs: [] })
    const answer = await infer({ id: 'mine', model_version: '2.0' })
    expect(answer).toMatchObject({ id: 'mine', model_name: 'm', model_version: '2.0' })
  })

  const TENSOR = { name: 'x', datatype: 'INT8', shape: [1], data: [1] }

  test.each([
    ['no JSON', 'hello'],
    ['no object', '[]'],
    ['no outputs', { ...REPLY, outputs: undefined }],
    ['an output without data', { ...REPLY, outputs: [{ ...TENSOR, data: undefined }] }],
    ['an integer out of range', { ...REPLY, outputs: [{ ...TENSOR, data: [200] }] }],
    ['a fraction', { ...REPLY, outputs: [{ ...TENSOR, data: [1.5] }] }],
    ['a text that is no integer', { ...REPLY, outputs: [{ ...TENSOR, data: ['x'] }] }],
    ['a shape of texts', { ...REPLY, outputs: [{ ...TENSOR, shape: ['x'] }] }],
    ['an unknown datatype', { ...REPLY, outputs: [{ ...TENSOR, datatype: 'WHAT' }] }],
    ['a number for an id', { ...REPLY, id: 5 }],
  ])('is an error when the handler gives %s, and the server goes on', async (_what, value) => {
    reply(value)
    const error = await failure(infer({}))
    expect(error.code).toBe(Status.UNAVAILABLE)
    expect(error.details).toMatch(/^The inference response of the handler is not valid: /)
    reply(REPLY)
    expect(await infer({})).toMatchObject({ id: 'r' })
  })

  test('carries the handler’s headers as metadata, and its error status as a status', async () => {
    grpc.models.onWork = (work) =>
      work.respond(JSON.stringify(REPLY), undefined, { headers: { 'X-Mine': 'yes' } })
    const metadata = new Promise<Metadata>((resolve) => {
      const sent = client['ModelInfer']!({ model_name: 'm' }, () => undefined) as unknown as {
        on(event: 'metadata', listener: (metadata: Metadata) => void): void
      }
      sent.on('metadata', resolve)
    })
    expect((await metadata).get('x-mine')).toEqual(['yes'])
    grpc.models.onWork = (work) => work.respond('too long', undefined, { status: 400 })
    const error = await failure(infer({}))
    expect([error.code, error.details.split('\n')[0]]).toEqual([Status.INVALID_ARGUMENT, 'too long'])
  })
})

test('without the key there is no such service', async () => {
  const plain = await startGrpc()
  const other = openInferenceClient(plain.port)
  expect((await failure(call(other, other['ServerLive']!, {}))).code).toBe(Status.UNIMPLEMENTED)
  other.close()
  await plain.close()
})
