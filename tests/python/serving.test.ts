import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { isAlive } from '../support/processes.ts'
import { allReady, answerOf, errorOf, GrpcPredictor, predict, PYTHON_MS } from '../support/python/client.ts'
import { pythonFolder } from '../support/python/python-folder.ts'
import { describePython } from '../support/python/test-python.ts'
import { rawRequest } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'

await describePython('Python handlers', ({ python }) => {
  let server: Server
  let grpc: GrpcPredictor

  beforeAll(async () => {
    server = await startServer({
      models: [
        pythonFolder('ops', 'ops', { mine: { deep: [1] } }),
        pythonFolder('classy', 'classy'),
        pythonFolder('batched', 'ops', { batchSize: 3, maxBatchDelay: 5000 }),
        pythonFolder('entry', 'ops', {}, { handler: 'ops:handle' }),
      ],
      config: {
        drain_timeout: 600,
        python,
        metrics_mode: 'prometheus',
        blacklist_env_vars: 'SECRET_.*',
      },
      env: { SECRET_WORD: 'x', OPEN_WORD: 'y', PYTHONPATH: '/somewhere/else' },
    })
    await allReady(server, ['ops', 'classy', 'batched', 'entry'])
    grpc = new GrpcPredictor(server)
  }, PYTHON_MS)

  afterAll(() => grpc.close())

  function raw(body: string | Buffer, headers: Record<string, string>, model = 'ops') {
    return rawRequest(server.ports.inference, `/predictions/${model}`, { headers, body })
  }

  describe('input', () => {
    test('is parsed by its content type, as in TorchServe', async () => {
      const seen = async (body: string | Buffer, headers = {}): Promise<unknown> =>
        JSON.parse((await raw(body, headers)).body)
      expect(await seen('[1]', { 'content-type': 'application/json' })).toEqual({ body: ['list', [1]] })
      expect(await seen('{', { 'content-type': 'application/json' })).toEqual({ body: ['bytearray', '7b'] })
      expect(await seen('grün', { 'content-type': 'text/plain; charset=x' })).toEqual({
        body: ['str', 'grün'],
      })
      expect(await seen(Buffer.of(0, 255), {})).toEqual({ body: ['bytearray', '00ff'] })
      expect(await seen('a=1&b=', { 'content-type': 'application/x-www-form-urlencoded' })).toEqual({
        a: ['bytearray', '31'],
        b: ['bytearray', ''],
      })
      const curl = { 'content-type': 'application/x-www-form-urlencoded' }
      expect(await seen('{"a":"b=c"}', curl)).toEqual({ body: ['dict', { a: 'b=c' }] })
      expect(await seen('grün', curl)).toEqual({ body: ['str', 'grün'] })
      expect(await seen('a=1&b', curl)).toEqual({ a: ['bytearray', '31'] })
    })

    test('of multipart has a name for each part', async () => {
      const part = (head: string, body: string): string =>
        `--b\r\nContent-Disposition: form-data; ${head}\r\n\r\n${body}\r\n`
      const response = await raw(
        `${part('name="file"; filename="f"\r\nContent-Type: text/plain', 'hello')}${part('name="field"', 'x')}--b--\r\n`,
        { 'content-type': 'multipart/form-data; boundary=b' },
      )
      expect(JSON.parse(response.body)).toEqual({ file: ['str', 'hello'], field: ['bytearray', '78'] })
    })

    test('headers come in the letter case of the client, with the request id', async () => {
      const response = await predict(server, 'ops', { op: 'headers' }, { 'X-My-Header': 'Brie' })
      expect(JSON.parse(response.body)).toMatchObject({
        id: response.headers['x-request-id'],
        'X-My-Header': 'Brie',
        body: { 'content-type': 'application/json' },
      })
    })

    test('of gRPC comes under its names', async () => {
      expect(JSON.parse(await grpc.unary('ops', { op: 'echo', x: 1 }))).toEqual({ op: 'echo', x: 1 })
    })

    test('a prediction with a path behind the model tells it', async () => {
      const { body } = await rawRequest(server.ports.inference, '/predictions/classy/1.0/v1/chat', {
        body: 'x',
      })
      expect(JSON.parse(body)).toMatchObject({ kind: 'prediction', url_path: 'v1/chat' })
    })
  })

  describe('the environment of a worker', () => {
    test('is that of TorchServe', async () => {
      const seen = await answerOf(server, 'ops', { op: 'properties' })
      expect(seen).toMatchObject({
        gpu_id: null,
        batch_size: 1,
        server_name: 'MMS',
        limit_max_image_pixels: true,
        python,
        manifest: { model: { modelName: 'ops', handler: 'ops' } },
        yaml: { minWorkers: 1, mine: { deep: [1] } },
      })
      expect(seen['cwd']).toBe(seen['model_dir'])
      expect(seen['env']).toEqual({
        ...{ OPEN_WORD: 'y', TS_DECODE_INPUT_REQUEST: 'true' },
        ...{ TS_IPEX_ENABLE: 'false', TS_IPEX_GPU_ENABLE: 'false' },
        ...{
          TS_REQUEST_SEQUENCE_ID: 'ts_request_sequence_id',
          TS_REQUEST_SEQUENCE_START: 'ts_request_sequence_start',
          TS_REQUEST_SEQUENCE_END: 'ts_request_sequence_end',
        },
      })
      expect(seen['argv']).toEqual([
        expect.stringMatching(/\/ts\/model_service_worker\.py$/),
        ...['--sock-type', 'unix', '--sock-name', expect.stringMatching(/\/\.ts\.sock\.\d+$/)],
        ...['--metrics-config', expect.stringMatching(/\/metrics\.yaml$/)],
      ])
      expect(seen['pythonpath']).toBe(`/somewhere/else:${String(seen['model_dir'])}`)
    })

    test('a handler may be one function of its module', async () => {
      expect(await answerOf(server, 'entry', { op: 'echo' })).toEqual({ op: 'echo' })
    })
  })

  describe('output', () => {
    test('text, bytes and JSON, without a content type unless the handler sets one', async () => {
      const text = await predict(server, 'ops', { op: 'answer', text: 'grün' })
      expect([text.status, text.body, text.headers['content-type']]).toEqual([200, 'grün', undefined])
      const binary = await predict(server, 'ops', { op: 'answer', hex: '00ff10' })
      expect(Buffer.concat(binary.chunks).toString('hex')).toBe('00ff10')
      expect((await predict(server, 'ops', { op: 'echo' })).body).toBe('{\n  "op": "echo"\n}')
    })

    test('status, reason, headers and content type', async () => {
      const asked = {
        op: 'answer',
        status: 201,
        reason: 'Made',
        type: 'text/x',
        headers: { 'X-Mine': 'yes' },
        text: 'a',
      }
      const { status, headers } = await predict(server, 'ops', asked)
      expect(status).toBe(201)
      expect(headers).toMatchObject({ 'content-type': 'text/x', 'x-mine': 'yes' })
    })

    test('a status of the handler keeps the handler’s body; one that HTTP cannot say is an error', async () => {
      const bad = await predict(server, 'ops', { op: 'answer', status: 418, text: 'teapot' })
      expect([bad.status, bad.body, bad.headers['connection']]).toEqual([418, 'teapot', 'close'])
      expect((await predict(server, 'ops', { op: 'answer', status: 7, text: '' })).status).toBe(503)
    })
  })

  describe('errors say what TorchServe says', () => {
    const cases: [Record<string, unknown>, number, string, number][] = [
      [{ op: 'throw' }, 503, 'Prediction failed', 14],
      [{ op: 'reject', message: 'not today', code: 418 }, 418, 'not today', 9],
      [{ op: 'reject', message: 'too much', code: 413 }, 507, 'too much', 8],
      [{ op: 'memory' }, 507, 'Out of resources', 13],
      [{ op: 'cuda' }, 507, 'Out of resources', 13],
      [{ op: 'unsupported' }, 503, 'Unsupported model output data type.', 14],
    ]
    test.each(cases)('%j', async (body, status, message, grpcCode) => {
      expect(errorOf(await predict(server, 'ops', body))).toEqual([status, message])
      const [code, details] = await grpc.unaryError('ops', body)
      expect([code, details]).toEqual([grpcCode, message])
    })

    test('and the worker goes on', async () => {
      const { restarts } = await server.worker('ops')
      expect(restarts).toBe(0)
    })
  })

  describe('explanations and descriptions', () => {
    test('explain is told to the handler', async () => {
      const { body } = await rawRequest(server.ports.inference, '/explanations/classy', { body: 'x' })
      expect(JSON.parse(body)).toMatchObject({ kind: 'explanation' })
    })

    test('customized=true asks the handler', async () => {
      const { json } = await server.manage('GET', '/models/classy?customized=true')
      expect((json[0] as Record<string, unknown>)['customizedMetadata']).toEqual({
        knows: 'classy',
        initialized: true,
      })
    })
  })

  describe('batches', () => {
    test('fill to batchSize, and each request gets its own answer and its own status', async () => {
      const ask = (n: number) => answerOf(server, 'batched', { op: 'batch', n })
      expect(await Promise.all([1, 2, 3].map(ask))).toMatchObject([1, 2, 3].map((n) => ({ size: 3, n })))
      const [first, second] = await Promise.all([
        predict(server, 'batched', { op: 'answer', status: 404, text: 'gone' }),
        predict(server, 'batched', { op: 'answer', status: 201, type: 'text/plain', text: 'made' }),
        predict(server, 'batched', { op: 'echo' }),
      ])
      expect([first.status, first.body, second.status, second.body]).toEqual([404, 'gone', 201, 'made'])
    })

    test('a handler that throws fails the requests of its batch', async () => {
      const answers = await Promise.all([
        ...['throw', 'echo', 'echo'].map((op) => predict(server, 'batched', { op })),
      ])
      expect(answers.map(errorOf)).toEqual(Array(3).fill([503, 'Prediction failed']))
    })
  })

  describe('metrics and logs', () => {
    test('lines of the worker’s output become metrics, declared ones only', async () => {
      await predict(server, 'ops', { op: 'metric', value: 3 })
      const labels = { ModelName: 'ops', Level: 'Model' }
      const read = () => rawRequest(server.ports.metrics, '/metrics', { method: 'GET' })
      const { body } = await server.until(read, (page) =>
        page.body.includes('PredictionTime{ModelName="ops"'),
      )
      expect(body).not.toContain('Undeclared')
      expect(await server.metric('PredictionTime', labels)).toBeGreaterThanOrEqual(0)
    })

    test('other lines go to the model log, by their stream', async () => {
      const lines = async () => server.output.filter((line) => /W-\d+-ops_1\.0-/.test(line))
      const found = await server.until(lines, (all) => all.some((line) => line.includes('a line of trouble')))
      expect(found.find((line) => line.includes('a line of the handler'))).toMatch(/INFO.*-stdout.*MODEL_LOG/)
      expect(found.find((line) => line.includes('a line of trouble'))).toMatch(/WARN.*-stderr.*MODEL_LOG/)
      expect(found.some((line) => line.includes('[METRICS]'))).toBe(false)
      expect(found.some((line) => line.includes('Torch worker started.'))).toBe(true)
    })

    test('describe knows the worker’s process', async () => {
      const { pid, memoryUsage } = await server.worker('ops')
      expect((await answerOf<{ pid: number }>(server, 'ops', { op: 'batch' })).pid).toBe(pid)
      expect(memoryUsage).toBeGreaterThan(1_000_000)
    })
  })

  test('the server stops at once, and leaves no process and no file', async () => {
    const { pid } = await server.worker('ops')
    expect(await server.stop()).toBe(0)
    expect(isAlive(pid)).toBe(false)
    expect(server.leftovers()).toEqual(['models'])
  })
})
