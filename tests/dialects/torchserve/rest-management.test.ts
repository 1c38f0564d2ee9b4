import { describe, expect, test } from '@jest/globals'
import {
  createManagementApp,
  createMetricsApp,
  createSharedApp,
} from '../../../frontend/dialects/rest-apps.ts'
import { ask, type Answer, bytes, startRig } from '../../support/http/rig.ts'

const status = (message: string): string => `{\n  "status": "${message}"\n}\n`
const NOT_ALLOWED = {
  code: 405,
  type: 'MethodNotAllowedException',
  message: 'Requested method is not allowed, please refer to API document.',
}

describe('registering', () => {
  const defaults = { synchronous: true, s3SseKms: false }

  test('takes its parameters from the query', async () => {
    const rig = await startRig(createManagementApp)
    const query =
      'url=a.mar&url=b.mar&model_name=n&handler=h:f&runtime=node&batch_size=4&max_batch_delay=50&response_timeout=7' +
      '&startup_timeout=8&initial_workers=2&synchronous=FALSE&s3_sse_kms=True'
    const answer = await ask(rig, `/models?${query}`, { method: 'POST' })
    expect([answer.status, answer.text]).toEqual([202, status('registered')])
    expect(rig.models.calls).toEqual([
      [
        'register',
        {
          url: 'a.mar',
          modelName: 'n',
          handler: 'h:f',
          runtime: 'node',
          batchSize: 4,
          maxBatchDelay: 50,
          responseTimeout: 7,
          startupTimeout: 8,
          initialWorkers: 2,
          synchronous: false,
          s3SseKms: true,
        },
      ],
    ])
  })

  test('takes them from a JSON body alone, and what is not there is not set', async () => {
    const rig = await startRig(createManagementApp)
    const answer = await ask(rig, '/models?url=query.mar&batch_size=9', {
      method: 'POST',
      body: JSON.stringify({ url: 'a.mar', initial_workers: 1, response_timeout: '12', model_name: null }),
      headers: { 'content-type': 'application/json' },
    })
    expect([answer.status, answer.text]).toEqual([200, status('registered')])
    expect(rig.models.calls).toEqual([
      ['register', { url: 'a.mar', initialWorkers: 1, responseTimeout: 12, ...defaults }],
    ])
  })

  test('leaves numbers that do not parse at their defaults, and tells', async () => {
    const rig = await startRig(createManagementApp)
    const answer = await ask(rig, '/models?url=a.mar&batch_size=four&initial_workers=1e3', { method: 'POST' })
    expect(rig.models.calls).toEqual([['register', { url: 'a.mar', ...defaults }]])
    expect(answer.json()).toEqual({
      status: 'registered',
      warnings: [
        'Parameter batch_size must be a whole number from 1 to 2147483647, found four; it is ignored',
        'Parameter initial_workers must be a whole number from 0 to 2147483647, found 1e3; it is ignored',
      ],
    })
  })

  test.each([
    ['batch_size=0&max_batch_delay=-1&response_timeout=0&startup_timeout=-5&initial_workers=-1', {}],
    ['batch_size=2147483648&initial_workers=-2147483649&response_timeout=99999999999', {}],
    [
      'batch_size=1&max_batch_delay=0&initial_workers=0',
      { batchSize: 1, maxBatchDelay: 0, initialWorkers: 0 },
    ],
  ])('leaves numbers out of their range at their defaults: %s', async (query, set) => {
    const rig = await startRig(createManagementApp)
    await ask(rig, `/models?url=a.mar&${query}`, { method: 'POST' })
    expect(rig.models.calls).toEqual([['register', { url: 'a.mar', ...set, ...defaults }]])
  })

  test.each([
    ['{"url": ', 500, 'JsonSyntaxException'],
    [Buffer.from('{"url": "\xe9"}', 'latin1'), 500, 'JsonSyntaxException'],
    ['[1]', 400, 'BadRequestException'],
    ['{"url": {"a": 1}}', 400, 'BadRequestException'],
    ['', 400, 'BadRequestException'],
    ['{}', 400, 'BadRequestException'],
  ])('refuses the body %j with %i %s', async (body, code, type) => {
    const rig = await startRig(createManagementApp)
    const answer = await ask(rig, '/models', {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json' },
    })
    expect([answer.status, (answer.json() as { type: string }).type]).toEqual([code, type])
    expect(rig.models.calls).toEqual([])
  })

  test('refuses a body over the limit with 413', async () => {
    const rig = await startRig(createManagementApp, { maxRequestSize: 50 })
    const answer = await ask(rig, '/models', {
      method: 'POST',
      body: `{"url": "${'a'.repeat(100)}"}`,
      headers: { 'content-type': 'application/json' },
    })
    expect([answer.status, answer.json()]).toMatchObject([
      413,
      { message: 'The request is larger than max_request_size' },
    ])
  })

  test('and unregistering are 405 while the model API is off; scaling is not', async () => {
    const rig = await startRig(createManagementApp, { enableModelApi: false })
    for (const [method, path] of [
      ['POST', '/models?url=a.mar'],
      ['DELETE', '/models/m'],
      ['DELETE', '/models/m/1'],
    ] as const) {
      const answer = await ask(rig, path, { method })
      expect(answer.json()).toEqual(NOT_ALLOWED)
      // TorchServe's tests compare the whole body, so the answer names the key elsewhere.
      expect(answer.headers.get('x-hint')).toBe(
        'start the server with --enable-model-api, or set enable_model_api=true',
      )
      expect(JSON.stringify(rig.logged)).toContain(
        `${method} ${path.split('?')[0]} was refused: the model API is off`,
      )
    }
    expect(rig.models.calls).toEqual([])
    expect((await ask(rig, '/models/m', { method: 'PUT' })).status).toBe(202)
  })
})

describe('parameters that TorchServe ignores', () => {
  const scaled = { modelName: 'm', synchronous: false }

  test.each([
    [
      'min_worker=abc',
      'min_worker must be a whole number from -2147483648 to 2147483647, found abc; it is ignored',
    ],
    ['synchronous=yes', 'synchronous must be true or false, found yes; it counts as false'],
    ['number_gpu=1', 'number_gpu has no effect'],
    ['colour=red', 'colour is not known; it is ignored'],
  ])('are ignored with a warning in answer and log: %s', async (query, warning) => {
    const rig = await startRig(createManagementApp)
    const answer = await ask(rig, `/models/m?${query}`, { method: 'PUT' })
    expect([answer.status, answer.json()]).toEqual([
      202,
      { status: 'scaled', warnings: [`Parameter ${warning}`] },
    ])
    expect(rig.models.calls).toEqual([['scale', scaled]])
    expect(rig.logged).toEqual([[{}, `PUT /models/m: Parameter ${warning}`]])
  })

  test.each([
    ['PUT', '/models/m?min_workr=2', 'min_worker'],
    ['POST', '/models?url=a.mar&batchsize=4', 'batch_size'],
    ['GET', '/models?limt=1', 'limit'],
    ['GET', '/models/m?customised=true', 'customized'],
    ['DELETE', '/models/m?synchronus=true', 'synchronous'],
    ['POST', '/workflows?url=a.war&workflowname=w', 'workflow_name'],
  ])('are 400 if they look misspelt, and nothing happens: %s %s', async (method, path, meant) => {
    const rig = await startRig(createManagementApp)
    const answer = await ask(rig, path, { method })
    expect(answer.json()).toMatchObject({
      code: 400,
      message: expect.stringContaining(`is not known: did you mean ${meant}?`),
    })
    expect(rig.models.calls).toEqual([])
  })

  test('are read from a JSON body too', async () => {
    const rig = await startRig(createManagementApp)
    const headers = { 'content-type': 'application/json' }
    const post = (fields: object): Promise<Answer> =>
      ask(rig, '/models', { method: 'POST', body: JSON.stringify({ url: 'a.mar', ...fields }), headers })
    expect((await post({ handlr: 'h' })).json()).toMatchObject({ code: 400 })
    expect((await post({ note: 'n' })).json()).toMatchObject({
      warnings: ['Parameter note is not known; it is ignored'],
    })
  })

  test('of which TorchServe’s documentation has two names count by both', async () => {
    const rig = await startRig(createManagementApp)
    await ask(rig, '/models?nextPageToken=2')
    expect(rig.models.calls).toEqual([['list', [undefined, 2]]])
  })
})

describe('the other routes', () => {
  test.each([
    ['GET', '/models', 200, ['list', [undefined, undefined]]],
    ['GET', '/models/?limit=5&next_page_token=10', 200, ['list', [5, 10]]],
    ['GET', '/models/m', 200, ['describe', ['m', undefined, false]]],
    ['GET', '/models/m/all?customized=true', 200, ['describe', ['m', 'all', true]]],
    ['GET', '/models/a%2F1.0', 200, ['describe', ['a', '1.0', false]]],
    ['GET', '/models/tokenizer', 200, ['describe', ['tokenizer', undefined, false]]],
    ['PUT', '/models/m', 202, ['scale', { modelName: 'm', synchronous: false }]],
    [
      'PUT',
      '/models/m/2?min_worker=3&max_worker=4&synchronous=true',
      200,
      ['scale', { modelName: 'm', modelVersion: '2', minWorker: 3, maxWorker: 4, synchronous: true }],
    ],
    [
      'PUT',
      '/models/m?model_version=2&min_worker=7',
      206,
      ['scale', { modelName: 'm', modelVersion: '2', minWorker: 7, synchronous: false }],
    ],
    ['PUT', '/models/m/2/set-default', 200, ['setDefault', ['m', '2']]],
    ['DELETE', '/models/m', 200, ['unregister', ['m', undefined]]],
    ['DELETE', '/models/m/1', 403, ['unregister', ['m', '1']]],
  ])('%s %s is answered %i', async (method, path, code, call) => {
    const rig = await startRig(createManagementApp)
    const answer = await ask(rig, path, { method })
    expect(answer.status).toBe(code)
    expect(rig.models.calls).toEqual([call])
    expect(answer.headers.get('content-type')).toBe('application/json')
    expect(answer.text.endsWith('}\n') || answer.text.endsWith(']\n')).toBe(true)
    expect(rig.statuses).toEqual([code])
  })

  test('carry the common headers', async () => {
    const rig = await startRig(createManagementApp, { cors: '*' })
    const { headers } = await ask(rig, '/models')
    expect(headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
    expect(headers.get('cache-control')).toBe('no-cache; no-store, must-revalidate, private')
    expect(headers.get('connection')).toBe('keep-alive')
    expect(headers.get('access-control-allow-origin')).toBe('*')
  })

  test('describe with an array', async () => {
    const rig = await startRig(createManagementApp)
    expect((await ask(rig, '/models/m/2')).json()).toMatchObject([{ modelName: 'm', modelVersion: '2' }])
  })

  test('tell whether a model is ready', async () => {
    const rig = await startRig(createManagementApp)
    expect((await ask(rig, '/v1/models/m')).json()).toMatchObject({ name: 'm', ready: true })
    expect((await ask(rig, '/v1/models/loading')).json()).toMatchObject({ name: 'loading', ready: false })
    expect((await ask(rig, '/v1/models/none')).status).toBe(404)
  })

  test.each([
    ['PATCH', '/models'],
    ['DELETE', '/models'],
    ['POST', '/models/m'],
    ['GET', '/models/m/1/set-default'],
    ['POST', '/v1/models/m'],
    ['PROPFIND', '/models'],
  ])('%s %s is 405', async (method, path) => {
    const rig = await startRig(createManagementApp)
    expect((await ask(rig, path, { method })).json()).toEqual(NOT_ALLOWED)
  })

  test.each(['/nothing', '/models/m/1/2', '/predictions/m'])('%s is 404', async (path) => {
    const rig = await startRig(createManagementApp)
    const answer = await ask(rig, path)
    expect(answer.json()).toMatchObject({ code: 404, type: 'ResourceNotFoundException' })
    expect(answer.headers.get('connection')).toBe('close')
  })
})

describe('tokens', () => {
  test('management asks for its own', async () => {
    const rig = await startRig(createManagementApp, { tokens: true })
    for (const path of ['/models', '/nothing']) {
      const refused = await ask(rig, path, { headers: { authorization: 'Bearer inference' } })
      expect(refused.json()).toMatchObject({ code: 400, type: 'InvalidKeyException' })
    }
    expect((await ask(rig, '/models', { headers: { authorization: 'Bearer management' } })).status).toBe(200)
  })

  test.each(['GET', 'POST', 'PUT'])('%s /token makes a new key for the API key alone', async (method) => {
    const rig = await startRig(createManagementApp, { tokens: true })
    const answer = await ask(rig, '/token?type=inference', {
      method,
      headers: { authorization: 'Bearer api' },
    })
    expect([answer.status, answer.text, answer.headers.get('content-type')]).toEqual([
      200,
      '\n',
      'application/json',
    ])
    expect(rig.rotated).toEqual([['inference', 'Bearer api']])
    const bad = await ask(rig, '/token?type=bad', { method })
    expect(bad.json()).toMatchObject({ code: 400, type: 'InvalidKeyException' })
  })
})

describe('one port for inference and management', () => {
  test('serves both, with versions', async () => {
    const rig = await startRig(createSharedApp)
    rig.models.onJob = (job) => job.respond({ status: 200, headers: {}, body: bytes('predicted') })
    expect((await ask(rig, '/ping')).status).toBe(200)
    expect((await ask(rig, '/predictions/m/1')).text).toBe('predicted')
    expect((await ask(rig, '/models/m/invoke')).text).toBe('predicted')
    expect((await ask(rig, '/v1/models/m:predict')).text).toBe('predicted')
    expect((await ask(rig, '/v1/models/m')).json()).toMatchObject({ name: 'm', ready: true })
    expect((await ask(rig, '/models/m/1')).json()).toMatchObject([{ modelName: 'm', modelVersion: '1' }])
    expect((await ask(rig, '/models/predict')).json()).toMatchObject([{ modelName: 'predict' }])
    expect((await ask(rig, '/models/m/1', { method: 'PUT' })).status).toBe(202)
    expect((await ask(rig, '/models/m/2', { method: 'DELETE' })).status).toBe(200)
  })

  test('asks each route for its own kind of token', async () => {
    const rig = await startRig(createSharedApp, { tokens: true })
    const ok = async (path: string, kind: string): Promise<boolean> =>
      (await ask(rig, path, { headers: { authorization: `Bearer ${kind}` } })).status === 200
    expect(await ok('/ping', 'inference')).toBe(true)
    expect(await ok('/ping', 'management')).toBe(false)
    expect(await ok('/models/m/1', 'management')).toBe(true)
    expect(await ok('/models/m/1', 'inference')).toBe(false)
    expect(await ok('/token?type=inference', 'api')).toBe(true)
  })
})

describe('/metrics', () => {
  test('answers everybody with the page, or the named part of it', async () => {
    const rig = await startRig(createMetricsApp, { tokens: true })
    for (const path of ['/metrics?name[]=a&name[]=b', '/metrics/sub?name%5B%5D=a&name[]=b']) {
      const answer = await ask(rig, path, { method: 'POST' })
      expect([answer.status, answer.text, answer.headers.get('content-type')]).toEqual([
        200,
        'a,b',
        'text/plain; version=0.0.4',
      ])
    }
    const empty = await ask(rig, '/metrics')
    expect([empty.status, empty.text]).toEqual([200, ''])
    expect((await ask(rig, '/models')).status).toBe(404)
  })
})
