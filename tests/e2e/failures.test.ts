import { join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { COUNT, countBody, countInput } from '../support/count.ts'
import { inferenceClient, readAll, type PredictionsRequest } from '../support/grpc-clients.ts'
import { RawRequest, rawRequest, type RawResponse } from '../support/raw-http.ts'
import { REPOSITORY, startServer, type Server } from '../support/server.ts'

const FAULTY = `faulty=${join(REPOSITORY, 'tests/support/handlers/faulty')}`

let server: Server

beforeAll(async () => {
  server = await startServer({ models: [FAULTY, COUNT], config: { cancel_grace_ms: 500 } })
  await Promise.all([server.ready('faulty'), server.ready('count')])
})

function faulty(fault: string, options: Record<string, unknown> = {}): Promise<RawResponse> {
  return rawRequest(server.ports.inference, '/predictions/faulty', {
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ fault, ...options }),
  })
}

function faultyInput(fault: string, options: Record<string, unknown> = {}): PredictionsRequest {
  return { model_name: 'faulty', input: { data: Buffer.from(JSON.stringify({ fault, ...options })) } }
}

function messageOf({ body }: RawResponse): string {
  return (JSON.parse(body) as { message: string }).message
}

/** Waits until the worker of the faulty model serves requests again. */
async function back(): Promise<void> {
  await server.ready('faulty')
  expect((await faulty('none')).body).toBe('ok')
}

describe('a handler that throws', () => {
  test('before the first item: 503 with the JSON of TorchServe, over REST', async () => {
    const response = await faulty('throw')
    expect(response.status).toBe(503)
    expect(response.body).toBe(
      '{\n  "code": 503,\n  "type": "InternalServerException",\n  "message": "Prediction failed"\n}\n',
    )
    expect(response.headers['connection']).toBe('close')
  })

  test('is in the operator’s log: the request id that the client got, and what the handler threw', async () => {
    const { headers } = await faulty('throw')
    const id = headers['x-request-id']!
    const [told] = await server.lines(`${id} HANDLER_FAILED: `)
    expect(told).toContain('faulty: thrown as it was told')
  })

  test('before the first item: UNAVAILABLE over gRPC, unary and streaming', async () => {
    const client = inferenceClient(server.ports.grpcInference)
    const { messages, error } = await readAll(client.StreamPredictions(faultyInput('throw')))
    expect(messages).toHaveLength(0)
    expect(error?.code).toBe(14)
    expect(error?.details).toContain('Prediction failed')
    const code = await new Promise((resolve) => {
      client.Predictions(faultyInput('throw'), (unary) => {
        resolve(unary?.code)
      })
    })
    expect(code).toBe(14)
    client.close()
  })

  test('after the third item: the HTTP client sees three chunks and a broken body', async () => {
    const response = await faulty('throw', { items: 3 })
    expect(response.status).toBe(200)
    expect(response.chunks).toHaveLength(3)
    expect(response.complete).toBe(false)
  })

  test('after the third item: the gRPC client sees three messages and a status', async () => {
    const client = inferenceClient(server.ports.grpcInference)
    const { messages, error } = await readAll(client.StreamPredictions(faultyInput('throw', { items: 3 })))
    expect(messages).toHaveLength(3)
    expect(error?.code).toBe(14)
    client.close()
  })

  test('harms nobody else: its worker lives on', async () => {
    const { pid } = await server.worker('faulty')
    await faulty('throw')
    expect((await faulty('pid')).body).toBe(String(pid))
  })

  test('with a status of its own, gives that status', async () => {
    const response = await faulty('reject', { status: 429, message: 'too many' })
    expect(response.status).toBe(429)
    expect(JSON.parse(response.body)).toMatchObject({ code: 429, message: 'too many' })
  })
})

describe('a worker that dies', () => {
  test('by SIGKILL in mid-stream breaks its own stream only, and describe says why', async () => {
    const others = new RawRequest(
      server.ports.inference,
      '/predictions/count',
      countBody({ id: 'other', n: 100, delay: 10 }),
    )
    await others.gotChunks(3)
    const stream = new RawRequest(server.ports.inference, '/predictions/faulty', {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ fault: 'hang', items: 3 }),
    })
    await stream.gotChunks(3)
    const { pid } = await server.worker('faulty')
    process.kill(pid, 'SIGKILL')
    const broken = await stream.done
    expect(broken.complete).toBe(false)
    await back()
    const worker = await server.worker('faulty')
    expect(worker.pid).not.toBe(pid)
    expect(worker.restarts).toBeGreaterThan(0)
    expect(worker.lastExit?.reason).toBe('The process was killed by SIGKILL')
    const { chunks, complete } = await others.done
    expect(chunks).toHaveLength(100)
    expect(complete).toBe(true)
  })

  test('is started again, once', async () => {
    // A worker of its own, because a worker that dies repeatedly restarts later each time.
    const alone = await startServer({ models: [FAULTY] })
    await alone.ready('faulty')
    const { pid } = await alone.worker('faulty')
    process.kill(pid, 'SIGKILL')
    await alone.until(
      () => alone.worker('faulty'),
      (worker) => worker.pid !== pid && worker.status === 'READY',
    )
    expect(await alone.worker('faulty')).toMatchObject({ restarts: 1 })
    await alone.stop()
  })

  test('before the first item fails the request with "Worker died.", over gRPC with a status', async () => {
    const response = await faulty('exit')
    expect(response.status).toBe(500)
    expect(JSON.parse(response.body)).toEqual({
      code: 500,
      type: 'InternalServerException',
      message: 'Worker died.',
    })
    await back()
    expect((await server.worker('faulty')).lastExit).toMatchObject({
      reason: 'The process exited with code 7',
      stderr: expect.arrayContaining(['faulty: leaving as it was told']),
    })
    const client = inferenceClient(server.ports.grpcInference)
    const { error } = await readAll(client.StreamPredictions(faultyInput('exit')))
    expect(error?.code).toBe(13)
    expect(error?.details).toContain('Worker died.')
    client.close()
    await back()
  })

  test('keeps its queue: requests that come while it is down are served by its next start', async () => {
    const { restarts } = await server.worker('faulty')
    expect((await faulty('exit')).status).toBe(500)
    const queued = await Promise.all([faulty('none'), faulty('none')])
    expect(queued.map(({ body }) => body)).toEqual(['ok', 'ok'])
    expect((await server.worker('faulty')).restarts).toBe(restarts + 1)
  })
})

describe('a handler deaf to its abort', () => {
  test('is killed after the grace, and its worker comes back', async () => {
    const { pid } = await server.worker('faulty')
    const request = new RawRequest(server.ports.inference, '/predictions/faulty', {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ fault: 'deaf' }),
    })
    await request.gotChunks(2)
    request.destroy()
    const worker = await server.until(
      () => server.worker('faulty'),
      (w) => w.pid !== pid && w.status === 'READY',
    )
    expect(worker.lastExit?.reason).toBe(
      'Killed: a cancelled request ran for longer than 500 ms; the worker is restarted',
    )
    await back()
  })

  test('that blocks its process is killed as well', async () => {
    const { pid } = await server.worker('faulty')
    const request = new RawRequest(server.ports.inference, '/predictions/faulty', {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ fault: 'busy', items: 1 }),
    })
    await request.gotChunks(1)
    request.destroy()
    await server.until(
      () => server.worker('faulty'),
      (w) => w.pid !== pid && w.status === 'READY',
    )
  })
})

describe('answers that do not fit', () => {
  test.each([
    ['circular', 503, 'Unsupported model output data type.'],
    ['extra_answers', 503, 'number of batch response mismatched'],
  ])('%s: %i %s', async (fault, status, message) => {
    const response = await faulty(fault)
    expect(response.status).toBe(status)
    expect(messageOf(response)).toBe(message)
  })

  test('an answer over max_response_size fails its own request', async () => {
    const { pid } = await server.worker('faulty')
    const response = await faulty('large', { size: 7_000_000 })
    expect(response.status).toBe(500)
    expect(messageOf(response)).toContain('max_response_size')
    expect((await server.worker('faulty')).pid).toBe(pid)
  })

  test('a header that could split the response is an error, not a split', async () => {
    const response = await faulty('bad_header')
    expect(response.status).toBe(503)
    expect(response.headers).not.toHaveProperty('x-injected')
  })
})

test('the count model was never touched by all this', async () => {
  const client = inferenceClient(server.ports.grpcInference)
  expect((await server.worker('count')).restarts).toBe(0)
  const { messages } = await readAll(client.StreamPredictions(countInput({ id: 'last', n: 2, delay: 0 })))
  expect(messages).toHaveLength(2)
  client.close()
})
