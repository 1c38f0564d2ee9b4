import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { splitHeaders } from '../../../common/headers.ts'
import { status as Status, type Metadata } from '@grpc/grpc-js'
import { ServeError } from '../../../common/errors.ts'
import { call, readAll } from '../../support/grpc-clients.ts'
import {
  failure,
  metadata,
  predictWith,
  REQUEST,
  startGrpc,
  streamWith,
  text,
  token,
  type RunningGrpc,
} from '../../edge/grpc/start-grpc.ts'

let grpc: RunningGrpc

beforeEach(async () => {
  grpc = await startGrpc()
})

afterEach(() => grpc.close())

const predict = (request: object = REQUEST, ...options: unknown[]) => predictWith(grpc, request, ...options)
const stream = (request: object = REQUEST, ...options: unknown[]) => streamWith(grpc, request, ...options)

describe('Ping', () => {
  const ping = () => call(grpc.inference, grpc.inference.Ping, {})

  test('answers the pretty JSON of the health, OK in either case', async () => {
    expect((await ping()).health).toBe('{\n  "status": "Healthy"\n}')
    grpc.models.healthy = false
    expect((await ping()).health).toBe('{\n  "status": "Unhealthy"\n}')
  })

  test('needs the inference token', async () => {
    grpc.authorizer.enabled = true
    const error = await failure(ping())
    expect([error.code, error.details]).toEqual([Status.PERMISSION_DENIED, 'Token Authorization failed.'])
    const { health } = await call(grpc.inference, grpc.inference.Ping, {}, token('inference'))
    expect(health).toContain('Healthy')
  })
})

describe('the request that a handler gets', () => {
  test('has the input entries as parts without content type, any bytes in them', async () => {
    const bytes = Buffer.from([0, 255, 128, 10])
    await predict({
      model_name: 'môdel 模型',
      input: { data: bytes, größe: Buffer.from('ü€😀'), empty: Buffer.alloc(0) },
    })
    const { parts: inputs, job } = grpc.models.works[0]!
    const { request } = job
    expect(request.modelName).toBe('môdel 模型')
    expect(request.modelVersion).toBeUndefined()
    expect(request.requestId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4/)
    const parts = inputs.map(({ name, contentType, data }) => [
      name,
      contentType,
      Buffer.from(data).toString('hex'),
    ])
    expect(parts).toEqual([
      ['data', undefined, '00ff800a'],
      ['größe', undefined, Buffer.from('ü€😀').toString('hex')],
      ['empty', undefined, ''],
    ])
  })

  test('carries the version, the deadline and the metadata but not the token', async () => {
    const sent = metadata({ 'x-user': 'ann', authorization: 'Bearer inference' })
    sent.set('picture-bin', Buffer.from('x'))
    const deadline = Date.now() + 20_000
    await predict({ ...REQUEST, model_version: '2.0' }, sent, { deadline })
    const { request } = grpc.models.works[0]!.job
    expect(request.modelVersion).toBe('2.0')
    expect(Math.abs(request.deadline! - deadline)).toBeLessThan(5_000)
    expect(splitHeaders(request.headers)).toMatchObject({ 'x-user': 'ann' })
    expect(Object.keys(splitHeaders(request.headers)).sort()).toEqual(['user-agent', 'x-user'])
  })

  test('wants handle, whatever its headers say', async () => {
    await predict(REQUEST, metadata({ explain: 'True', describe: 'True' }))
    const { method, headers } = grpc.models.works[0]!.job.request
    expect(method).toBe('handle')
    expect(splitHeaders(headers)).toMatchObject({ explain: 'True', describe: 'True' })
  })

  test('has at most 1024 inputs', async () => {
    const input = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`i${i}`, Buffer.alloc(0)]))
    await predict({ model_name: 'echo', input: input(1_024) })
    const error = await failure(predict({ model_name: 'echo', input: input(1_025) }))
    expect([error.code, error.details.split('\n')[0]]).toEqual([
      Status.INTERNAL,
      'A request may have at most 1024 inputs.',
    ])
    expect(grpc.models.works).toHaveLength(1)
  })

  test('has no parts without input, and an entry called __proto__ changes nothing', async () => {
    await predict({ model_name: 'echo' })
    expect(grpc.models.works[0]!.parts).toEqual([])
    await predict({ model_name: 'echo', input: Object.fromEntries([['__proto__', Buffer.from('x')]]) })
    expect(({} as Record<string, unknown>)['0']).toBeUndefined()
  })
})

describe('Predictions', () => {
  test.each([0, 1, 127, 128, 16_383, 16_384, 100_000])('answers a body of %i bytes', async (size) => {
    const body = Buffer.alloc(size, 'äb')
    grpc.models.onWork = (work) => work.respond(body)
    expect((await predict()).prediction.equals(body)).toBe(true)
  })

  test('joins the items of a streaming handler', async () => {
    grpc.models.onWork = (work) => {
      for (const item of ['Grüß', '', ' ', 'Gott ', '😀']) work.respond(item, true)
      work.respond('.', false)
    }
    expect((await predict()).prediction.toString()).toBe('Grüß Gott 😀.')
  })

  test('refuses a stream that is larger than max_response_size and stops the handler', async () => {
    const working = grpc.models.nextWork()
    const answer = failure(predict())
    const work = await working
    for (let item = 0; item < 11; item++) work.respond(Buffer.alloc(100_000), true)
    const error = await answer
    expect(error.code).toBe(Status.RESOURCE_EXHAUSTED)
    expect(error.details).toContain('max_response_size')
    expect(await work.abandoned).toBe('failed')
    expect(work.respond('more', true)).toBe(true)
  })

  test('sends what the handler set beside the body as metadata, and OK even for its error status', async () => {
    grpc.models.onWork = (work) =>
      work.respond('no', undefined, {
        status: 418,
        contentType: 'text/plain',
        headers: {
          'X-Tokens': '12',
          'Content-Length': '9',
          Connection: 'close',
          'grpc-status': '3',
          Bad: 'ü',
          ':path': '/',
        },
      })
    const got = new Promise<Metadata>((resolve) => {
      const running = grpc.inference.Predictions(REQUEST, () => undefined) as unknown as NodeJS.EventEmitter
      running.on('metadata', resolve)
    })
    const { 'content-type': own, ...rest } = (await got).getMap()
    expect(own).toBe('application/grpc+proto')
    expect(rest).toMatchObject({
      'ts-response-status': '418',
      'ts-response-content-type': 'text/plain',
      'x-tokens': '12',
    })
    expect(rest).not.toHaveProperty('bad')
    expect(rest).not.toHaveProperty('content-length')
  })
})

describe('StreamPredictions', () => {
  test('sends one message per item, and none for an empty one', async () => {
    grpc.models.onWork = (work) => {
      for (const item of ['a', 'ü', '']) work.respond(item, true)
      work.respond('', false)
    }
    const { messages, error } = await readAll(stream())
    expect(error).toBeUndefined()
    expect(text(messages)).toEqual(['a', 'ü'])
  })

  test('sends one message for a handler that does not stream', async () => {
    const { messages, error } = await readAll(stream())
    expect([text(messages), error]).toEqual([['ok'], undefined])
  })

  test('sends the first message while the handler still works', async () => {
    const working = grpc.models.nextWork()
    const reading = stream()
    const first = new Promise((resolve) => reading.on('data', resolve))
    const work = await working
    work.respond('first', true)
    expect(await first).toMatchObject({ prediction: Buffer.from('first') })
    expect(work.job.ended).toBe(false)
    work.respond('', false)
    await readAll(reading)
  })

  test('keeps thousands of small messages in order and apart', async () => {
    const expected = Array.from({ length: 5000 }, (_, index) => `item ${index}`)
    grpc.models.onWork = (work) => {
      for (const item of expected) work.respond(item, true)
      work.respond('end', false)
    }
    expect(text((await readAll(stream())).messages)).toEqual([...expected, 'end'])
  })

  test('ends with the messages so far and a status when the handler fails after three', async () => {
    grpc.models.onWork = (work) => {
      for (const item of ['1', '2', '3']) work.respond(item, true)
      work.job.fail(new ServeError('HANDLER_FAILED', 'Prediction failed'))
    }
    const { messages, error } = await readAll(stream())
    expect(text(messages)).toEqual(['1', '2', '3'])
    expect([error?.code, error?.details]).toEqual([
      Status.UNAVAILABLE,
      'Prediction failed\norg.pytorch.serve.http.InternalServerException',
    ])
  })

  test('carries the head of the first item as metadata', async () => {
    grpc.models.onWork = (work) => {
      work.respond('1', true, { status: 201, headers: { 'x-a': 'b' } })
      work.respond('', false, { status: 500, headers: { 'x-late': 'c' } })
    }
    const reading = stream()
    const got = new Promise<unknown>((resolve) => reading.once('metadata', resolve))
    expect((await readAll(reading)).messages).toHaveLength(1)
    const sent = ((await got) as Metadata).getMap()
    expect(sent).toMatchObject({ 'ts-response-status': '201', 'x-a': 'b' })
    expect(sent).not.toHaveProperty('x-late')
  })
})
