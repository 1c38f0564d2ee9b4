import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { expect, test } from '@jest/globals'
import { ECHO } from '../support/count.ts'
import { Gate } from '../support/gate.ts'
import { inferenceClient, readAll } from '../support/grpc-clients.ts'
import { modelFolder } from '../support/model-folder.ts'
import { RawRequest, rawRequest } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'

const MODEL = { minWorkers: 1, maxWorkers: 1 }

/** A stream that has begun and goes on when its gate is open. */
async function heldStream(server: Server): Promise<{ stream: RawRequest; gate: Gate }> {
  const gate = new Gate()
  const headers = { 'content-type': 'text/plain' }
  const stream = new RawRequest(server.ports.inference, '/predictions/gated', { headers, body: gate.path })
  await stream.gotChunks(1)
  return { stream, gate }
}

/** Resolves when nothing listens there any more: the drain has begun. */
async function refused(server: Server, port: number): Promise<void> {
  const isRefused = async (): Promise<boolean> => {
    const socket = connect(port, '127.0.0.1')
    const connected = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    return !connected
  }
  await server.until(isRefused, (now) => now)
}

/** A request that is not whole yet, so that its connection is kept through the beginning of a drain. */
class BegunRequest {
  readonly #socket: Socket
  #text = ''

  constructor(port: number, line: string) {
    this.#socket = connect(port, '127.0.0.1')
    this.#socket.setEncoding('latin1').on('data', (text: string) => (this.#text += text))
    this.#socket.write(`${line} HTTP/1.1\r\nhost: h\r\n`)
  }

  /** The server has read what is there of it: it has answered to another request since. */
  async answer(rest: string): Promise<string> {
    this.#socket.write(rest)
    await once(this.#socket, 'close')
    return this.#text
  }
}

test('what runs has drain_timeout to finish: longer than cancel_grace_ms, and longer than some seconds', async () => {
  const server = await startServer({
    models: [modelFolder('gated', 'gated', MODEL)],
    config: { drain_timeout: 600, cancel_grace_ms: 100 },
  })
  await server.ready('gated')
  const { stream, gate } = await heldStream(server)
  const exit = server.stop()
  await refused(server, server.ports.inference)
  // Nothing is measured: a shorter drain would have ended the stream by now.
  await wait(4000)
  gate.open()
  const { chunks, complete } = await stream.done
  expect([chunks.map(String), complete]).toEqual([['begun', 'opened', 'end'], true])
  expect(await exit).toBe(0)
})

test('new work is refused while what runs goes on: on open connections, on an open call, on every listener', async () => {
  const sequences = { sequenceBatching: true, maxNumSequence: 5, sequenceMaxIdleMSec: 60_000 }
  const server = await startServer({
    models: [
      ECHO,
      modelFolder('gated', 'gated', MODEL),
      modelFolder('sums', 'sequences', { ...MODEL, ...sequences, maxSequenceJobQueueSize: 5 }),
    ],
    config: { drain_timeout: 600 },
  })
  await Promise.all(['echo', 'gated', 'sums'].map((name) => server.ready(name)))
  const { inference, management, metrics } = server.ports
  const { stream, gate } = await heldStream(server)
  const call = inferenceClient(server.ports.grpcInference)
  const sums = call.StreamPredictions2()
  const all = readAll(sums)
  const first = new Promise<void>((resolve) => sums.once('data', () => resolve()))
  const message = (data: string) => ({
    ...{ model_name: 'sums', sequence_id: 's' },
    input: { data: Buffer.from(data) },
  })
  sums.write(message('1'))
  const begun = [
    new BegunRequest(inference, 'POST /predictions/echo'),
    new BegunRequest(inference, 'GET /v2/health/ready'),
    new BegunRequest(management, 'GET /models'),
    new BegunRequest(management, 'GET /api-description'),
  ]
  await first
  // One answer on each listener: what came before it has been read.
  for (const port of [inference, management]) await rawRequest(port, '/ping', { method: 'GET' })
  const exit = server.stop()
  for (const port of [inference, management, metrics]) await refused(server, port)
  for (const request of begun) {
    const answer = await request.answer('content-length: 0\r\n\r\n')
    expect(answer).toMatch(/^HTTP\/1\.1 503 /)
    expect(answer).toMatch(/\r\nconnection: close\r\n/i)
  }
  sums.write(message('2'))
  sums.end()
  const { messages } = await all
  expect(messages.map(({ prediction, status }) => status?.message ?? String(prediction))).toEqual([
    '1',
    'The server is shutting down',
  ])
  gate.open()
  expect((await stream.done).complete).toBe(true)
  call.close()
  expect(await exit).toBe(0)
})

test('an unregistered model’s streams go on to their end, and the answer waits for them', async () => {
  const server = await startServer({ models: [modelFolder('gated', 'gated', MODEL)] })
  await server.ready('gated')
  const { stream, gate } = await heldStream(server)
  let answered = false
  const unregistering = server.manage('DELETE', '/models/gated').finally(() => (answered = true))
  await server.until(
    () => server.manage('GET', '/models/gated'),
    ({ status }) => status === 404,
  )
  const late = await rawRequest(server.ports.inference, '/predictions/gated')
  expect([late.status, answered]).toEqual([404, false])
  gate.open()
  const { chunks, complete } = await stream.done
  expect([chunks.map(String), complete]).toEqual([['begun', 'opened', 'end'], true])
  expect((await unregistering).status).toBe(200)
})
