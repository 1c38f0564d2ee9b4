import { Agent, request } from 'node:http'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { Gate } from '../support/gate.ts'
import {
  call,
  inferenceClient,
  inferenceV2Client,
  type Message,
  openInferenceClient,
  readAll,
} from '../support/grpc-clients.ts'
import { RawRequest, rawRequest } from '../support/raw-http.ts'
import type { Server } from '../support/server.ts'
import { startVersions, traffic } from '../support/versions.ts'

const agent = new Agent({ keepAlive: true, maxSockets: 16 })
let server: Server

beforeAll(async () => {
  const config = { maxConcurrency: 8 }
  server = await startVersions(
    { '1.0': { config }, '2.0': { config } },
    {
      config: {
        ts_header_key_sequence_id: 'ts_request_sequence_id',
        open_inference_grpc_port: 0,
        job_queue_size: 1_000,
      },
    },
  )
})

beforeEach(async () => {
  expect(await traffic(server, 'DELETE')).toMatchObject({ status: 200, json: { weights: {} } })
})

afterAll(() => agent.destroy())

/** A request of the Open Inference Protocol. */
const V2 = { inputs: [{ name: 'text', shape: [1], datatype: 'BYTES', data: ['hi'] }] }

interface Got {
  status: number
  body: string
  version: string | undefined
}

/** Over a connection that is kept, as clients with many requests do it. */
function predict(body = '', headers: Record<string, string> = {}, path = '/predictions/m'): Promise<Got> {
  const { port } = { port: server.ports.inference }
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path, method: 'POST', agent, headers }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (data: string) => (text += data))
      response.on('error', reject).on('end', () => {
        const { 'x-model-version': version } = response.headers
        resolve({ status: response.statusCode!, body: text, version: version as string | undefined })
      })
    })
    sent.on('error', reject).end(body)
  })
}

/** How many of these answers came from 2.0. */
function canaries(answers: readonly (Got | string)[]): number {
  return answers.filter((answer) => (typeof answer === 'string' ? answer : answer.body) === '2.0').length
}

async function repeated<T>(count: number, ask: (index: number) => Promise<T>): Promise<T[]> {
  const all: T[] = []
  for (let index = 0; index < count; index += 1) all.push(await ask(index))
  return all
}

describe('weights', () => {
  test('10 % are 1,000 of 10,000 requests, also of many clients at once, and each answer tells its version', async () => {
    await traffic(server, 'PUT', { weights: { '1.0': 90, '2.0': 10 } })
    const each = Array.from({ length: 16 }, () => repeated(625, () => predict()))
    const answers = (await Promise.all(each)).flat()
    expect(answers.every(({ status, body, version }) => status === 200 && body === version)).toBe(true)
    expect([answers.length, canaries(answers)]).toEqual([10_000, 1_000])
  }, 120_000)

  test('a request that names a version goes there, and counts for no weight', async () => {
    await traffic(server, 'PUT', { weights: { '2.0': 1 } })
    const named = await repeated(4, () => predict('', {}, '/predictions/m/1.0'))
    expect(named).toEqual(Array(4).fill({ status: 200, body: '1.0', version: undefined }))
    expect((await predict()).body).toBe('2.0')
    const { json } = await traffic(server, 'GET')
    expect(json['versions']).toEqual([{ modelVersion: '2.0', weight: 1, share: 1, requests: 1 }])
  })

  test('without weights the default version answers, and says nothing of versions', async () => {
    expect(await predict()).toEqual({ status: 200, body: '1.0', version: undefined })
    const { json } = await traffic(server, 'GET')
    expect(json).toEqual({ modelName: 'm', defaultVersion: '1.0', weights: {}, versions: [] })
  })

  test('describe tells the part of a version', async () => {
    await traffic(server, 'PUT', { weights: { '1.0': 3, '2.0': 1 } })
    await repeated(8, () => predict())
    const [first, second] = await server.describe('m', '/all')
    expect([first!.traffic, second!.traffic]).toEqual([
      { weight: 3, share: 0.75, requests: 6 },
      { weight: 1, share: 0.25, requests: 2 },
    ])
    await traffic(server, 'DELETE')
    expect((await server.describe('m'))[0]).not.toHaveProperty('traffic')
  })
})

describe('every API', () => {
  async function json(path: string, body: object): Promise<Record<string, unknown>> {
    const { body: text } = await predict(JSON.stringify(body), { 'content-type': 'application/json' }, path)
    return JSON.parse(text) as Record<string, unknown>
  }

  const APIS: Record<string, () => Promise<string>> = {
    'TorchServe REST': async () => (await predict()).body,
    'KServe V1': async () => (await predict('', {}, '/v1/models/m:predict')).body,
    'V2 infer_stream': async () => {
      const { body } = await predict(JSON.stringify(V2), {}, '/v2/models/m/infer_stream')
      return /"model_version":"(\d\.0)"/.exec(body)![1]!
    },
    'V2 generate': async () => {
      const answer = await json('/v2/models/m/generate', { text_input: 'hi' })
      return answer['text_output'] as string
    },
    'OpenAI completions': async () => {
      const answer = await json('/v1/completions', { model: 'm', prompt: 'hi' })
      return (answer['choices'] as [{ text: string }])[0].text
    },
    'TorchServe gRPC': async () => {
      const client = inferenceClient(server.ports.grpcInference)
      const { prediction } = await call(client, client.Predictions, { model_name: 'm', input: {} })
      client.close()
      return prediction.toString()
    },
    'V2 gRPC': async () => {
      const client = inferenceV2Client(server.ports.openInference, 'mlserver')
      const inputs = [{ name: 'text', shape: [1], datatype: 'BYTES', contents: { bytes_contents: ['aGk='] } }]
      const ask = client['ModelInfer']! as Parameters<typeof call<Message, Message>>[1]
      const answer = await call<Message, Message>(client, ask, { model_name: 'm', inputs })
      client.close()
      return answer['model_version'] as string
    },
  }

  test.each(Object.entries(APIS))('%s goes by weight, one turn for each request', async (_, ask) => {
    await traffic(server, 'PUT', { weights: { '1.0': 1, '2.0': 1 } })
    const answers = await repeated(8, ask)
    expect(canaries(answers)).toBe(4)
    await traffic(server, 'PUT', { weights: { '2.0': 1 } })
    expect(await ask()).toBe('2.0')
  })

  test.each([false, true])('OpenAI tells the version in a header, streamed: %s', async (stream) => {
    await traffic(server, 'PUT', { weights: { '2.0': 1 } })
    const body = JSON.stringify({ model: 'm', prompt: 'hi', stream })
    const answer = await predict(body, { 'content-type': 'application/json' }, '/v1/completions')
    expect([answer.status, answer.version]).toEqual([200, '2.0'])
  })

  test('V2 with a version in the path goes there', async () => {
    await traffic(server, 'PUT', { weights: { '2.0': 1 } })
    const answer = await json('/v2/models/m/versions/1.0/infer', V2)
    expect(answer).toMatchObject({ model_version: '1.0', outputs: [{ data: ['1.0'] }] })
  })
})

test('V2 infer without a version reaches handlers of two kinds, each as it wants to be asked', async () => {
  const own = await startVersions({ '1.0': {}, '2.0': { exports: 'Tensors' } })
  await traffic(own, 'PUT', { weights: { '1.0': 1, '2.0': 1 } })
  const body = JSON.stringify(V2)
  const answers = await repeated(8, () => rawRequest(own.ports.inference, '/v2/models/m/infer', { body }))
  expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200))
  // 1.0 has only TorchServe's handle, so the path is TorchServe's there.
  expect(answers.filter((answer) => answer.body === '1.0')).toHaveLength(4)
  expect(answers.filter((answer) => answer.body.includes('"model_version":"2.0"'))).toHaveLength(4)
  await own.stop()
})

test('TorchServe’s own Open Inference service takes one turn for each request', async () => {
  const own = await startVersions(
    { '1.0': {}, '2.0': { exports: 'Tensors' } },
    { config: { ts_open_inference_protocol: true } },
  )
  await traffic(own, 'PUT', { weights: { '1.0': 1, '2.0': 1 } })
  const client = openInferenceClient(own.ports.grpcInference)
  const inputs = [{ name: 'text', shape: [1], datatype: 'BYTES', contents: { bytes_contents: ['aGk='] } }]
  const ask = client['ModelInfer']! as Parameters<typeof call<Message, Message>>[1]
  await repeated(8, () =>
    call<Message, Message>(client, ask, { model_name: 'm', inputs }).catch(() => undefined),
  )
  client.close()
  const { json } = await traffic(own, 'GET')
  expect(json['versions']).toMatchObject([{ requests: 4 }, { requests: 4 }])
  await own.stop()
})

test('a stream that runs ends on its version, whatever becomes of the weights', async () => {
  await traffic(server, 'PUT', { weights: { '2.0': 1 } })
  const gate = new Gate()
  const stream = new RawRequest(server.ports.inference, '/predictions/m', { body: `gate ${gate.path}` })
  await stream.gotChunks(1)
  await traffic(server, 'PUT', { weights: { '1.0': 1, '2.0': 0 } })
  expect((await predict()).body).toBe('1.0')
  await traffic(server, 'DELETE')
  gate.open()
  const { chunks, complete, headers } = await stream.done
  expect([chunks.map(String), complete, headers['x-model-version']]).toEqual([['2.0', 'end'], true, '2.0'])
})

test('all messages of a call of MLServer’s ModelStreamInfer go where the first one went', async () => {
  await traffic(server, 'PUT', { weights: { '1.0': 1, '2.0': 1 } })
  const client = inferenceV2Client(server.ports.openInference, 'mlserver')
  const inputs = [{ name: 'text', shape: [1], datatype: 'BYTES', contents: { bytes_contents: ['aGk='] } }]
  const versions = await repeated(4, async () => {
    const stream = client.ModelStreamInfer()
    for (let message = 0; message < 3; message += 1) stream.write({ model_name: 'm', inputs })
    stream.end()
    const { messages, error } = await readAll(stream)
    expect(error).toBeUndefined()
    return messages.map((answer) => answer['model_version'] as string)
  })
  client.close()
  expect(versions.map((each) => [each.length, new Set(each).size])).toEqual(Array(4).fill([3, 1]))
  expect(canaries(versions.map(([version]) => version!))).toBe(2)
})

describe('what cannot be set', () => {
  test.each([
    ['no body', '', 400, 'The body must be JSON such as {"weights": {"1.0": 90, "2.0": 10}}'],
    ['no JSON', '{', 400, 'The body must be JSON such as'],
    ['no weights', {}, 400, 'weights must be an object such as {"1.0": 90, "2.0": 10}'],
    ['only zeros', { weights: { '1.0': 0 } }, 400, 'weights must have a weight above 0'],
    ['a fraction', { weights: { '1.0': 0.5 } }, 400, 'must be a whole number from 0 to 1000000'],
    ['less than none', { weights: { '1.0': -1, '2.0': 2 } }, 400, 'weights.1.0 must be a whole number'],
    ['the key of every object', '{"weights": {"1.0": 1, "__proto__": 1}}', 400, 'weights.__proto__'],
    [
      'an unknown version',
      { weights: { '3.0': 1 } },
      404,
      'Register it first, or leave it out of the weights',
    ],
    ['a misspelt key', { weights: { '1.0': 1 }, stiky: {} }, 400, 'stiky is not supported'],
    ['two kinds of sticky', { weights: { '1.0': 1 }, sticky: { header: 'a', caller: true } }, 400, 'sticky'],
    ['a header with a secret', { weights: { '1.0': 1 }, sticky: { header: 'Authorization' } }, 400, 'sticky'],
    ['a rule for roll-backs', { weights: { '1.0': 1 }, rollback: {} }, 400, 'rollback is not supported'],
  ])('%s', async (_, body, status, message) => {
    const answer = await traffic(server, 'PUT', body)
    expect(answer).toMatchObject({ status, json: { code: status } })
    expect(answer.json['message']).toContain(message)
    expect((await traffic(server, 'GET')).json['weights']).toEqual({})
  })

  test('weights of a model that is not there, and methods that are not', async () => {
    for (const method of ['GET', 'DELETE']) {
      const { status } = await rawRequest(server.ports.management, '/models/none/traffic', { method })
      expect(status).toBe(404)
    }
    const { status } = await rawRequest(server.ports.management, '/models/m/traffic', { method: 'POST' })
    expect(status).toBe(405)
  })

  test('a weight for a version that no worker has loaded', async () => {
    await server.manage('PUT', '/models/m/2.0?min_worker=0&max_worker=0&synchronous=true')
    const weights = { '1.0': 90, '2.0': 10 }
    const { status, json } = await traffic(server, 'PUT', { weights })
    expect([status, json['message']]).toEqual([
      409,
      'Version 2.0 of model m has no worker that has loaded it: add workers with PUT ' +
        '/models/m/2.0?min_worker=1&synchronous=true, then set its weight',
    ])
    await server.manage('PUT', '/models/m/2.0?min_worker=1&synchronous=true')
    expect((await traffic(server, 'PUT', { weights })).status).toBe(200)
  })
})

test('a version with a weight is unregistered only when it has none', async () => {
  const own = await startVersions({ '1.0': {}, '2.0': {} })
  await traffic(own, 'PUT', { weights: { '1.0': 90, '2.0': 10 } })
  const refused = await own.manage('DELETE', '/models/m/2.0')
  expect([refused.status, refused.json.message]).toEqual([
    409,
    'Version 2.0 of model m has the weight 10: move its weight to other versions with PUT /models/m/traffic, or end the ' +
      'weights with DELETE, then unregister it',
  ])
  await traffic(own, 'PUT', { weights: { '1.0': 100, '2.0': 0 } })
  expect((await own.manage('DELETE', '/models/m/2.0')).status).toBe(200)
  expect((await traffic(own, 'GET')).json['weights']).toEqual({ '1.0': 100 })
  expect((await own.manage('DELETE', '/models/m')).status).toBe(200)
  await own.stop()
})

test('the API description has the route', async () => {
  const { body } = await rawRequest(server.ports.management, '/api-description', { method: 'GET' })
  const { paths } = JSON.parse(body) as { paths: Record<string, object> }
  expect(Object.keys(paths['/models/{model_name}/traffic']!).sort()).toEqual(['delete', 'get', 'put'])
})
