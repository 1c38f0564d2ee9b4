import { splitHeaders } from '../../../common/headers.ts'
import { handlerHeaders } from '../../../frontend/workers/in-flight.ts'
import { describe, expect, test } from '@jest/globals'
import { createInferenceApp } from '../../../frontend/dialects/rest-apps.ts'
import { ask, bytes, type Rig, startRig, Wire } from '../../support/http/rig.ts'

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/** Answers every job with what the handler would see. */
async function startEcho(options: Parameters<typeof startRig>[1] = {}): Promise<Rig> {
  const rig = await startRig(createInferenceApp, options)
  rig.models.onJob = ({ request }) => {
    const parts = request.parts.map(({ name, data }) => [name, Buffer.from(data).toString()])
    const seen = {
      model: request.modelName,
      version: request.modelVersion,
      method: request.method,
      headers: splitHeaders(handlerHeaders(request)),
      parts,
    }
    rig.models.jobs.at(-1)!.respond({ status: 200, headers: {}, body: bytes(JSON.stringify(seen)) })
  }
  return rig
}

interface Seen {
  model: string
  version?: string
  method: string
  headers: Record<string, string>
  parts: [string, string][]
}

describe('the paths that predict', () => {
  test.each([
    ['/predictions/m', 'm', undefined, 'False', ''],
    ['/predictions/m/', 'm', undefined, 'False', ''],
    ['/predictions/m/1.0', 'm', '1.0', 'False', ''],
    ['/predictions/m/1.0/v1/chat/completions', 'm', '1.0', 'False', 'v1/chat/completions'],
    ['/predictions/m%2F1.0', 'm', '1.0', 'False', ''],
    ['/predictions/a%20b?x=1', 'a b', undefined, 'False', ''],
    ['/explanations/m/2/rest', 'm', '2', 'True', 'rest'],
    ['/v1/models/m:predict', 'm', undefined, 'False', undefined],
    ['/v1/models/m:explain', 'm', undefined, 'True', undefined],
    ['/v2/models/m/infer', 'm', undefined, 'False', undefined],
    ['/v2/models/m/explain', 'm', undefined, 'True', undefined],
    ['/invocations', 'm', undefined, undefined, undefined],
    ['/invocations?model_name=q', 'q', undefined, undefined, undefined],
    ['/models/m/invoke', 'm', undefined, undefined, undefined],
    ['/m/predict', 'm', undefined, undefined, undefined],
    ['/m/3/predict', 'm', '3', undefined, undefined],
  ])('%s', async (path, model, version, explain, urlPath) => {
    const rig = await startEcho()
    const answer = await ask(rig, path, {
      method: 'POST',
      body: 'x',
      headers: { explain: 'True', 'X-Mine': 'mine' },
    })
    expect(answer.status).toBe(200)
    const seen = answer.json() as Seen
    expect([seen.model, seen.version]).toEqual([model, version])
    // If the path adds no header, the client's header passes unchanged.
    expect([seen.headers['explain'], seen.headers['url_path']]).toEqual([explain ?? 'True', urlPath])
    expect([seen.method, seen.headers['X-Mine']]).toEqual([
      path.includes('expl') ? 'explain' : 'handle',
      'mine',
    ])
    expect(seen.parts.at(-1)).toEqual(['body', 'x'])
    expect(answer.headers.get('x-request-id')).toMatch(uuid)
  })

  test.each(['GET', 'PUT', 'POST', 'DELETE', 'PATCH'])('predict with %s', async (method) => {
    const rig = await startEcho()
    const answer = await ask(rig, '/predictions/m', { method })
    expect((answer.json() as Seen).parts).toEqual([['body', '']])
  })

  test('do not predict with OPTIONS', async () => {
    const rig = await startEcho()
    const answer = await ask(rig, '/predictions/m', { method: 'OPTIONS' })
    expect([answer.status, rig.models.jobs.length]).toEqual([200, 0])
  })

  test.each(['/invocations?a=1&a=2&b=%20', '/models/m/invoke?a=1&a=2&b=%20', '/m/predict?a=1&a=2&b=%20'])(
    '%s gives the query to the handler',
    async (path) => {
      const seen = (await ask(await startEcho(), path)).json() as Seen
      expect(seen.parts).toEqual([
        ['a', '1'],
        ['a', '2'],
        ['b', ' '],
        ['body', ''],
      ])
    },
  )

  test('take the model of /invocations from a form when several are loaded', async () => {
    const rig = await startEcho()
    rig.models.startup = ['a', 'b']
    const form = new URLSearchParams({ model_name: 'b' })
    const seen = (await ask(rig, '/invocations', { method: 'POST', body: form })).json() as Seen
    expect(seen.model).toBe('b')
    const answer = await ask(rig, '/invocations', { method: 'POST', body: 'x' })
    expect(answer.json()).toEqual({
      code: 400,
      type: 'BadRequestException',
      message: 'Parameter model_name is required.',
    })
  })

  test('show the handler headers in the letter case of the client, the last of repeated ones', async () => {
    const rig = await startEcho()
    const wire = new Wire(rig.listener.port)
    wire.request(
      'GET',
      '/predictions/m',
      '',
      'X-CamelCase: 1',
      'x-twice: a',
      'x-twice: b',
      'X-Request-Id: mine',
    )
    const text = await wire.until('parts')
    expect(text).toContain('"X-CamelCase":"1"')
    expect(text).toContain('"x-twice":"b"')
    expect(text).toContain('"X-Request-Id":"mine"')
    expect(text).not.toContain('x-request-id: mine')
  })

  test('take a whole URL as the target, as proxies send it', async () => {
    const rig = await startEcho()
    await new Wire(rig.listener.port).request('GET', 'http://host.test/predictions/m').until('"model":"m"')
  })
})

describe('refusals', () => {
  const error = (code: number, type: string, message: string) => ({ code, type, message })
  test.each([
    ['/predictions/none', 404, 'ModelNotFoundException', 'Model not found: none'],
    [
      '/predictions/m/9',
      404,
      'ModelVersionNotFoundException',
      'Model version: 9 does not exist for model: m',
    ],
    ['/predictions/full', 503, 'ServiceUnavailableException', 'Model "full" has no worker'],
    ['/predictions/bug', 500, 'InternalServerException', 'Internal server error'],
    ['/predictions/%zz', 400, 'BadRequestException', 'The path is not valid percent-encoding.'],
    [
      '/predictions',
      404,
      'ResourceNotFoundException',
      'Requested resource is not found, please refer to API document.',
    ],
  ])('%s is answered %i %s', async (path, status, type, message) => {
    const rig = await startRig(createInferenceApp)
    const answer = await ask(rig, path, { method: 'POST', body: 'x' })
    expect(answer.status).toBe(status)
    expect(answer.text).toBe(`${JSON.stringify(error(status, type, message), null, 2)}\n`)
    expect(answer.headers.get('content-type')).toBe('application/json')
    expect(answer.headers.get('connection')).toBe('close')
    expect(answer.headers.get('x-request-id')).toMatch(uuid)
    expect(rig.statuses).toEqual([status])
    expect(JSON.stringify(rig.logged).includes('secret detail')).toBe(path === '/predictions/bug')
  })

  test('a request without the inference token is answered 400, whatever its path', async () => {
    const rig = await startRig(createInferenceApp, { tokens: true })
    for (const path of ['/ping', '/predictions/m', '/nothing']) {
      for (const token of ['', 'Bearer management']) {
        const answer = await ask(rig, path, { headers: { authorization: token } })
        expect(answer.json()).toEqual(error(400, 'InvalidKeyException', 'Token failed'))
      }
      const known = await ask(rig, path === '/predictions/m' ? '/ping' : path, {
        headers: { authorization: 'Bearer inference' },
      })
      expect(known.status).toBe(path === '/nothing' ? 404 : 200)
    }
    expect(rig.models.jobs).toEqual([])
  })

  test('an error closes the connection', async () => {
    const rig = await startRig(createInferenceApp)
    const text = await new Wire(rig.listener.port).request('GET', '/predictions/none').rest()
    expect(text).toContain('connection: close')
  })
})

describe('/ping', () => {
  test('says Healthy with 200 and Unhealthy with 500', async () => {
    const rig = await startRig(createInferenceApp)
    const healthy = await ask(rig, '/ping')
    expect([healthy.status, healthy.text]).toEqual([200, '{\n  "status": "Healthy"\n}\n'])
    rig.models.healthy = false
    const unhealthy = await ask(rig, '/ping/')
    expect([unhealthy.status, unhealthy.text]).toEqual([500, '{\n  "status": "Unhealthy"\n}\n'])
  })
})

describe('a draining server', () => {
  test('refuses requests on connections that it has, and closes them', async () => {
    const rig = await startRig(createInferenceApp)
    const wire = new Wire(rig.listener.port).request('GET', '/ping')
    await wire.until('Healthy')
    rig.app.beginDrain()
    wire.received = ''
    const text = await wire.request('GET', '/predictions/m').rest()
    expect(text).toMatch(/^HTTP\/1.1 503 [^]*connection: close[^]*ServiceUnavailableException/)
  })

  test('lets a stream finish and closes its connection after it', async () => {
    const rig = await startRig(createInferenceApp)
    const wire = new Wire(rig.listener.port).request('GET', '/predictions/m')
    const job = await rig.models.nextJob()
    rig.models.start(job)
    job.respond({ status: 200, headers: {}, body: bytes('a'), more: true })
    await wire.until('1\r\na\r\n')
    const closed = rig.listener.close()
    job.respond({ status: 200, headers: {}, body: bytes('b'), more: false })
    expect(await wire.rest()).toMatch(/1\r\nb\r\n0\r\n\r\n$/)
    await closed
  })

  test('closes a connection after the plain answer that was under way', async () => {
    const rig = await startRig(createInferenceApp)
    const wire = new Wire(rig.listener.port).request('GET', '/predictions/m')
    const job = await rig.models.nextJob()
    const closed = rig.listener.close()
    job.respond({ status: 200, headers: {}, body: bytes('last') })
    expect(await wire.rest()).toMatch(/connection: close[^]*last$/)
    await closed
  })
})
