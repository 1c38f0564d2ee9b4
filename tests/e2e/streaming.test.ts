import { beforeAll, describe, expect, test } from '@jest/globals'
import { COUNT, countBody, countInput, ECHO, next, produced } from '../support/count.ts'
import { call, inferenceClient, readAll } from '../support/grpc-clients.ts'
import { RawRequest, rawRequest } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'

let server: Server

/**
 * What the worker sent before the first of these requests was answered has arrived when the last one is
 * answered.
 */
const ROUND_TRIPS = 3

const gatedBody = (id: string, n: number) => countBody({ id, n, gated: true })

beforeAll(async () => {
  server = await startServer({ models: [COUNT, ECHO] })
  await Promise.all([server.ready('count'), server.ready('echo')])
})

describe('a stream over chunked HTTP', () => {
  test('each item is a chunk of its own, and arrives before the handler has made the next', async () => {
    const request = new RawRequest(server.ports.inference, '/predictions/count', gatedBody('one-by-one', 5))
    for (let k = 1; k <= 5; k += 1) {
      await request.gotChunks(k)
      expect((await produced(server, 'one-by-one')).items).toBe(k)
      await next(server, 'one-by-one')
    }
    const response = await request.done
    expect(response.chunks.map(String)).toEqual(['1\n', '2\n', '3\n', '4\n', '5\n'])
    expect(response.complete).toBe(true)
  })

  test('an item comes before the answers to requests that the handler took after it', async () => {
    const request = new RawRequest(server.ports.inference, '/predictions/count', gatedBody('prompt', 20))
    await request.gotChunks(1)
    for (let k = 2; k <= 20; k += 1) {
      await next(server, 'prompt')
      for (let trips = 0; trips < ROUND_TRIPS; trips += 1) await produced(server, 'prompt')
      expect(request.chunks).toHaveLength(k)
    }
    expect((await request.done).complete).toBe(true)
  })

  test('carries the headers of a stream and is never compressed', async () => {
    const response = await rawRequest(server.ports.inference, '/predictions/count', {
      headers: { 'content-type': 'application/json', 'accept-encoding': 'gzip' },
      body: JSON.stringify({ n: 2, delay: 0 }),
    })
    expect(response).toMatchObject({ status: 200, body: '1\n2\n' })
    expect(response.headers).toMatchObject({
      'transfer-encoding': 'chunked',
      ts_stream_next: 'true',
      'x-accel-buffering': 'no',
      'content-type': 'text/plain; charset=utf-8',
    })
    expect(response.headers['cache-control']).toContain('no-cache')
    expect(response.headers).not.toHaveProperty('content-encoding')
    expect(response.headers).not.toHaveProperty('content-length')
  })

  test('a hundred items without delay are a hundred chunks', async () => {
    const response = await rawRequest(
      server.ports.inference,
      '/predictions/count',
      countBody({ id: 'fast', n: 100, delay: 0 }),
    )
    expect(response.chunks).toHaveLength(100)
  })

  test('many streams of one worker run at once, each in its own order', async () => {
    const all = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        rawRequest(
          server.ports.inference,
          '/predictions/count',
          countBody({ id: `many-${i}`, n: 20, delay: 5 }),
        ),
      ),
    )
    const expected = Array.from({ length: 20 }, (_, k) => `${k + 1}\n`)
    for (const { chunks } of all) expect(chunks.map(String)).toEqual(expected)
  })
})

describe('a stream over gRPC', () => {
  test('each item is a message, the empty final result none, and they arrive as they are made', async () => {
    const client = inferenceClient(server.ports.grpcInference)
    const stream = client.StreamPredictions(countInput({ id: 'grpc', n: 20, gated: true }))
    const messages: string[] = []
    const all = readAll(stream.on('data', ({ prediction }) => messages.push(prediction.toString())))
    await new Promise<void>((resolve) => stream.once('data', () => resolve()))
    for (let k = 2; k <= 20; k += 1) {
      await next(server, 'grpc')
      for (let trips = 0; trips < ROUND_TRIPS; trips += 1) await produced(server, 'grpc')
      expect(messages).toHaveLength(k)
    }
    expect((await all).error).toBeUndefined()
    expect(messages).toEqual(Array.from({ length: 20 }, (_, k) => `${k + 1}\n`))
    client.close()
  })

  test('a handler that does not stream gives one message', async () => {
    const client = inferenceClient(server.ports.grpcInference)
    const { messages } = await readAll(
      client.StreamPredictions({ model_name: 'echo', input: { data: Buffer.from('hi') } }),
    )
    expect(messages.map(({ prediction }) => prediction.toString())).toEqual(['hi'])
    client.close()
  })

  test('Predictions of a streaming handler gives all items in one message, and the worker lives on', async () => {
    const client = inferenceClient(server.ports.grpcInference)
    const before = await server.worker('count')
    const { prediction } = await call(
      client,
      client.Predictions,
      countInput({ id: 'joined', n: 3, delay: 0 }),
    )
    expect(prediction.toString()).toBe('1\n2\n3\n')
    expect((await server.worker('count')).pid).toBe(before.pid)
    client.close()
  })
})

describe('a unary request', () => {
  test('comes back over REST and gRPC', async () => {
    const bytes = Buffer.from([0, 1, 2, 250, 255])
    const rest = await rawRequest(server.ports.inference, '/predictions/echo', {
      headers: { 'content-type': 'application/octet-stream' },
      body: bytes,
    })
    expect(rest.chunks[0]).toEqual(bytes)
    expect(rest.headers['content-length']).toBe('5')
    const client = inferenceClient(server.ports.grpcInference)
    const { prediction } = await call(client, client.Predictions, {
      model_name: 'echo',
      input: { data: bytes },
    })
    expect(prediction).toEqual(bytes)
    client.close()
  })

  test('multipart parts reach the handler by name', async () => {
    const body =
      '--b\r\ncontent-disposition: form-data; name="data"; filename="f.txt"\r\ncontent-type: text/plain\r\n\r\nhello\r\n--b--\r\n'
    const response = await rawRequest(server.ports.inference, '/predictions/echo', {
      headers: { 'content-type': 'multipart/form-data; boundary=b' },
      body,
    })
    expect(response.body).toBe('hello')
  })
})
