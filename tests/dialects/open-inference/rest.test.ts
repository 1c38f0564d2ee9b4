import { gunzipSync, gzipSync } from 'node:zlib'
import { describe, expect, test } from '@jest/globals'
import {
  createInferenceApp,
  createManagementApp,
  createSharedApp,
} from '../../../frontend/dialects/rest-apps.ts'
import type { Job } from '../../../frontend/jobs/job.ts'
import { version } from '../../../frontend/package-info.ts'
import { ServeError } from '../../../common/errors.ts'
import { decodeRequest, encodeResponse, TENSORS_TYPE } from '../../../common/tensors/message.ts'
import { ask, startRig, type Answer, type Rig } from '../../support/http/rig.ts'

const ON = { openInferenceProtocol: true }
const INT32 = { name: 'x', shape: [2], datatype: 'INT32', data: [1, 2] }
const DEEP = `${'['.repeat(30_000)}${']'.repeat(30_000)}`
const HEAD = { status: 200, headers: {}, contentType: TENSORS_TYPE }

function said({ status, text }: Answer): [number, unknown] {
  return [status, JSON.parse(text)]
}

/** A listener whose model `m` has a handler that accepts tensors and returns them. */
async function native(rig: Promise<Rig> = startRig(createInferenceApp)): Promise<Rig> {
  const started = await rig
  started.models.methods = ['predictStream']
  started.models.onJob = (job) => {
    const { inputs, id } = decodeRequest(job.request.parts[0]!.data)
    job.respond({ ...HEAD, body: encodeResponse({ id, outputs: inputs }) })
  }
  return started
}

function post(value: object | string | Buffer, headers: Record<string, string> = {}): RequestInit {
  const body = typeof value === 'string' || Buffer.isBuffer(value) ? value : JSON.stringify(value)
  return { method: 'POST', body: body as string, headers }
}

/** One item of a stream. */
function item(job: Job, text: string): void {
  job.respond({ status: 200, headers: {}, body: Buffer.from(text), more: true })
}

describe.each([
  ['the inference listener', createInferenceApp],
  ['the shared listener', createSharedApp],
])('%s', (_name, create) => {
  test.each(['GET', 'POST'])('is live, and says what it is: %s', async (method) => {
    const rig = await startRig(create)
    expect(said(await ask(rig, '/v2/health/live', { method }))).toEqual([200, { live: true }])
    expect(said(await ask(rig, '/v2/', { method }))).toEqual([
      200,
      {
        name: 'Torchserve',
        version,
        extenstion: ['kserve', 'kubeflow'],
        extensions: expect.arrayContaining(['kserve', 'kubeflow', 'binary_tensor_data', 'model_repository']),
      },
    ])
  })

  test('is ready when the models of its start have workers that loaded them', async () => {
    const rig = await startRig(create)
    expect(said(await ask(rig, '/v2/health/ready'))).toEqual([200, { ready: true, live: true }])
    rig.models.startup = ['m', 'loading']
    expect(said(await ask(rig, '/v2/health/ready'))).toEqual([503, { ready: false, live: true }])
    rig.models.startup = []
    rig.models.healthy = false
    expect(said(await ask(rig, '/v2/health/ready'))).toEqual([503, { ready: false, live: true }])
  })

  test('asks for the inference token, for loading and unloading for that of management', async () => {
    const rig = await startRig(create, { ...ON, tokens: true })
    const bearer = (kind: string) => ({ headers: { authorization: `Bearer ${kind}` }, method: 'POST' })
    for (const path of [
      '/v2',
      '/v2/health/live',
      '/v2/models/m',
      '/v2/models/m/infer',
      '/v2/repository/index',
    ]) {
      expect(said(await ask(rig, path, { method: 'POST' }))).toEqual([401, { error: 'Token failed' }])
      expect((await ask(rig, path, bearer('management'))).status).toBe(401)
      expect((await ask(rig, path, bearer('inference'))).status).not.toBe(401)
    }
    const load = '/v2/repository/models/m/load'
    expect((await ask(rig, load, bearer('inference'))).status).toBe(401)
    expect(said(await ask(rig, load, bearer('management')))).toEqual([200, { name: 'm', load: true }])
    expect(rig.models.repository).toMatchObject({ asked: [['load', 'm']] })
  })
})

test('the management listener has no such routes', async () => {
  const rig = await startRig(createManagementApp, ON)
  for (const path of ['/v2', '/v2/health/live', '/v2/models/m/versions/1']) {
    expect((await ask(rig, path)).status).toBe(404)
  }
})

test.each(['/v2/models/m/config', '/v2/models/m/stats', '/v2/trace/setting', '/v2/models/m/infer/none'])(
  'a path that only others have says so where clients look: %s',
  async (path) => {
    const rig = await startRig(createInferenceApp)
    const answer = await ask(rig, path)
    expect([answer.status, answer.json()]).toMatchObject([
      404,
      { error: expect.stringContaining('not found') },
    ])
  },
)

test('loading and unloading need the model API', async () => {
  const rig = await startRig(createInferenceApp, { enableModelApi: false })
  const answer = await ask(rig, '/v2/repository/models/m/unload', { method: 'POST' })
  expect([answer.status, Object.keys(answer.json() as object)]).toEqual([403, ['error']])
})

test('the index takes no body at all, or says that only ready models are wanted', async () => {
  const rig = await startRig(createInferenceApp)
  const ready = { name: 'a', version: '1', state: 'READY', reason: '' } as const
  const other = { name: 'b', version: '', state: 'UNAVAILABLE', reason: 'not loaded' } as const
  rig.models.repository.entries = [ready, other]
  expect(said(await ask(rig, '/v2/repository/index', { method: 'POST' }))).toEqual([200, [ready, other]])
  expect(said(await ask(rig, '/v2/repository/index', post({ ready: true })))).toEqual([200, [ready]])
})

describe('infer', () => {
  test('answers tensors in JSON, with the ids and names that the handler left out', async () => {
    const rig = await native()
    const answer = await ask(rig, '/v2/models/m/infer', post({ id: '7', inputs: [INT32] }))
    expect(said(answer)).toEqual([200, { model_name: 'm', model_version: '1.0', id: '7', outputs: [INT32] }])
    expect(answer.headers.get('content-type')).toBe('application/json')
    const unnamed = await ask(rig, '/v2/models/m/versions/1.0/infer', post({ inputs: [INT32] }))
    expect(unnamed.json()).toMatchObject({ id: expect.stringMatching(/^[0-9a-f-]{36}$/) })
  })

  test('takes and gives raw tensors as the client wants each, in any mixture', async () => {
    const rig = await native()
    const json = JSON.stringify({
      inputs: [
        INT32,
        { name: 'y', shape: [1], datatype: 'INT64', parameters: { binary_data_size: 8 } },
        { name: 'z', shape: [1], datatype: 'BYTES', parameters: { binary_data_size: 6 } },
      ],
      outputs: [
        { name: 'y', parameters: { binary_data: true } },
        { name: 'x', parameters: { binary_data: false } },
      ],
      parameters: { binary_data_output: true },
    })
    const raw = Buffer.from('0100000000002000020000' + '00ff00', 'hex')
    const answer = await fetch(`${rig.listener.address}/v2/models/m/infer`, {
      ...post(Buffer.concat([Buffer.from(json), raw]), {
        'inference-header-content-length': String(json.length),
      }),
    })
    const body = Buffer.from(await answer.arrayBuffer())
    const length = Number(answer.headers.get('inference-header-content-length'))
    expect(answer.headers.get('content-type')).toBe('application/octet-stream')
    expect(JSON.parse(body.subarray(0, length).toString())).toMatchObject({
      outputs: [
        INT32,
        { name: 'y', parameters: { binary_data_size: 8 } },
        { name: 'z', parameters: { binary_data_size: 6 } },
      ],
    })
    expect(body.subarray(length)).toEqual(raw)
  })

  test('a handler of TorchServe gets parts, and what it says becomes the output', async () => {
    const rig = await startRig(createInferenceApp, ON)
    const bytes = { name: 'text', shape: [1], datatype: 'BYTES', data: ['hi'] }
    const seen: unknown[] = []
    rig.models.onJob = (job) => {
      seen.push(
        job.request.parts.map(({ name, contentType, data }) => [
          name,
          contentType,
          Buffer.from(data).toString(),
        ]),
      )
      job.respond({ status: 200, headers: {}, body: Buffer.from('said') })
    }
    const ask1 = (inputs: object[], parameters?: object) =>
      ask(rig, '/v2/models/m/infer', post({ id: 'i', inputs, parameters }))
    expect(said(await ask1([bytes]))).toEqual([
      200,
      {
        model_name: 'm',
        model_version: '1.0',
        id: 'i',
        outputs: [
          {
            name: 'output',
            shape: [1, 1],
            datatype: 'BYTES',
            parameters: { content_type: 'str' },
            data: ['said'],
          },
        ],
      },
    ])
    await ask1([bytes, { ...INT32, shape: [1, 2] }], { a: 1 })
    expect(seen).toEqual([
      [['data', undefined, 'hi']],
      [
        ['text', undefined, 'hi'],
        ['x', 'application/json', '[[1,2]]'],
        ['parameters', 'application/json', '{"a":1}'],
      ],
    ])
  })

  test('without the protocol it is TorchServe’s path for a handler of its kind', async () => {
    const rig = await startRig(createInferenceApp)
    rig.models.onJob = (job) => {
      expect(job.request.parts).toMatchObject([{ name: 'body' }])
      job.respond({ status: 200, headers: {}, body: Buffer.from('plain') })
    }
    expect((await ask(rig, '/v2/models/m/infer', post({ inputs: [INT32] }))).text).toBe('plain')
  })

  test('compresses whole answers for those who ask for it, and takes compressed requests', async () => {
    const rig = await native()
    const data = Array.from({ length: 500 }, (_, i) => i)
    const packed = gzipSync(JSON.stringify({ inputs: [{ ...INT32, shape: [500], data }] }))
    const headers = { 'content-encoding': 'gzip', 'accept-encoding': 'gzip' }
    const answer = await ask(rig, '/v2/models/m/infer', post(packed, headers))
    expect(answer.headers.get('content-encoding')).toBe('gzip')
    expect(answer.json()).toMatchObject({ outputs: [{ data }] })
    expect(gunzipSync(packed).byteLength).toBeGreaterThan(0)
    const bomb = gzipSync(Buffer.alloc(1_000_000, ' '))
    expect((await ask(rig, '/v2/models/m/infer', post(bomb, headers))).status).toBe(413)
  })

  test.each<[string, number, RequestInit, string?]>([
    ['what is no JSON', 422, post('{')],
    ['JSON that is not UTF-8', 422, post(Buffer.from('{"id":"\xe9","inputs":[]}', 'latin1'))],
    [
      'a header length beyond the body',
      422,
      post({ inputs: [] }, { 'inference-header-content-length': '99' }),
    ],
    ['a header length that is none', 422, post({ inputs: [] }, { 'inference-header-content-length': '-1' })],
    ['an empty header length', 422, post({ inputs: [] }, { 'inference-header-content-length': '' })],
    ['a name of megabytes', 422, post({ inputs: [{ ...INT32, name: 'x'.repeat(90_000), shape: [3] }] })],
    [
      'raw data of another size for such a name',
      422,
      post({
        inputs: [
          { name: 'x'.repeat(90_000), shape: [1], datatype: 'INT8', parameters: { binary_data_size: 9 } },
        ],
      }),
    ],
    ['parameters nested too deep', 422, post(`{"inputs":[],"parameters":{"p":${DEEP}}}`)],
    ['such parameters beside a text', 422, post(`{"text_input":"x","p":${DEEP}}`), '/v2/models/m/generate'],
    ['an encoding that is unknown', 415, post('x', { 'content-encoding': 'br' })],
    ['what is not compressed as it says', 422, post('x', { 'content-encoding': 'gzip' })],
    ['a shape that the data do not fill', 422, post({ inputs: [{ ...INT32, shape: [3] }] })],
    [
      'a raw request for a model without metadata',
      422,
      post('x', { 'inference-header-content-length': '0' }),
    ],
    ['an unknown model', 404, post({ inputs: [] }), '/v2/models/none/infer'],
    ['an unknown version', 404, post({ inputs: [] }), '/v2/models/m/versions/9/infer'],
    ['a model that still loads', 503, post({ inputs: [] }), '/v2/models/loading/infer_stream'],
    ['another method', 405, { method: 'GET' }],
    ['too large a body', 413, post('x'.repeat(100_001))],
  ])('refuses %s with %i', async (_what, status, init, path = '/v2/models/m/infer') => {
    const rig = await native()
    const answer = await ask(rig, path, init)
    expect([answer.status, answer.headers.get('content-type')]).toEqual([status, 'application/json'])
    expect(answer.json()).toMatchObject({ error: expect.any(String) })
    expect(answer.text.length).toBeLessThan(1_000)
  })
})

describe('infer_stream', () => {
  const STREAM = '/v2/models/m/infer_stream'
  const TEXT = post(
    { id: 'i', inputs: [{ name: 't', shape: [1], datatype: 'BYTES', data: ['x'] }] },
    { 'accept-encoding': 'gzip' },
  )

  test('sends each item as one event, at once and never compressed', async () => {
    const rig = await startRig(createInferenceApp)
    const asked = fetch(`${rig.listener.address}${STREAM}`, TEXT)
    const job = await rig.models.nextJob()
    rig.models.start(job)
    item(job, 'one ')
    const answer = await asked
    expect(answer.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    expect(answer.headers.get('content-encoding')).toBeNull()
    const reader = answer.body!.getReader()
    const first = Buffer.from((await reader.read()).value).toString()
    expect(first).toMatch(
      /^data: \{"model_name":"m","model_version":"1.0","id":"i","outputs":\[.*"data":\["one "\]\}\]\}\n\n$/,
    )
    item(job, 'two')
    expect(Buffer.from((await reader.read()).value).toString()).toContain('"data":["two"]')
    job.respond({ status: 200, headers: {}, body: Buffer.alloc(0), more: false })
    expect((await reader.read()).done).toBe(true)
  })

  test('a failure before the first item has a status, one after it is an event and then the end', async () => {
    const rig = await startRig(createInferenceApp)
    const failed = ask(rig, STREAM, TEXT)
    ;(await rig.models.nextJob()).fail(new ServeError('HANDLER_REJECTED', 'no', { status: 418 }))
    expect(said(await failed)).toEqual([418, { error: 'no' }])
    const broken = ask(rig, STREAM, TEXT)
    const job = await rig.models.nextJob()
    rig.models.start(job)
    item(job, 'one')
    job.fail(new ServeError('HANDLER_FAILED', 'Prediction failed'))
    const { status, text } = await broken
    const events = text.trimEnd().split('\n\n')
    expect([status, events.length]).toEqual([200, 2])
    expect(events[1]).toBe('data: {"error":"Prediction failed","id":"i","model_name":"m"}')
  })

  test('stops the handler when the client leaves', async () => {
    const rig = await startRig(createInferenceApp)
    const controller = new AbortController()
    const asked = fetch(`${rig.listener.address}${STREAM}`, { ...TEXT, signal: controller.signal })
    const job = await rig.models.nextJob()
    rig.models.start(job)
    item(job, 'one')
    await asked
    controller.abort()
    await rig.models.until(() => rig.models.abandoned.length === 1)
    expect(rig.models.abandoned[0]).toEqual({ job, reason: 'client left' })
  })
})

describe('generate', () => {
  test('text_input is the extension, inputs are an ordinary request', async () => {
    const rig = await native()
    const generated = await ask(
      rig,
      '/v2/models/m/generate',
      post({ id: 'i', text_input: 'hi', parameters: { top_p: 1 } }),
    )
    expect(said(generated)).toEqual([
      200,
      { id: 'i', model_name: 'm', model_version: '1.0', text_input: 'hi', text_output: 'hi' },
    ])
    const inferred = await ask(rig, '/v2/models/m/generate', post({ inputs: [INT32] }))
    expect(inferred.json()).toMatchObject({ outputs: [INT32] })
    expect((await ask(rig, '/v2/models/m/generate', post({ text: 'hi' }))).status).toBe(422)
  })

  test('streams events of the extension', async () => {
    const rig = await startRig(createInferenceApp)
    const asked = ask(rig, '/v2/models/m/generate_stream', post({ text_input: 'hi', max_tokens: 2 }))
    const job = await rig.models.nextJob()
    expect(job.request.parts.map(({ name, data }) => [name, Buffer.from(data).toString()])).toEqual([
      ['data', 'hi'],
      ['parameters', '{"max_tokens":2}'],
    ])
    rig.models.start(job)
    item(job, 'one')
    job.finish()
    const { text } = await asked
    expect(JSON.parse(text.slice('data: '.length))).toMatchObject({ model_name: 'm', text_output: 'one' })
  })
})
