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
import { startVersions } from '../support/versions.ts'
import { json, WorkflowStore } from '../support/workflows.ts'

const MODEL = { minWorkers: 1, maxWorkers: 1 }

/** The model `sums`: clients send it messages on a call that stays open. */
function sumsFolder(): string {
  const sequences = { sequenceBatching: true, maxNumSequence: 5, maxSequenceJobQueueSize: 5 }
  return modelFolder('sums', 'sequences', { ...MODEL, ...sequences, sequenceMaxIdleMSec: 60_000 })
}

/** A call of the model `sums` whose first message, 1, has its reply. */
async function openCall(server: Server): Promise<{ finish(data: string): Promise<string[]> }> {
  const client = inferenceClient(server.ports.grpcInference)
  const call = client.StreamPredictions2()
  const all = readAll(call)
  const first = new Promise<void>((resolve) => call.once('data', () => resolve()))
  const send = (data: string): void => {
    call.write({ model_name: 'sums', sequence_id: 's', input: { data: Buffer.from(data) } })
  }
  send('1')
  await first
  return {
    /** Sends a last message; every reply of the call. */
    async finish(data) {
      send(data)
      call.end()
      const { messages } = await all
      client.close()
      return messages.map(({ prediction, status }) => status?.message ?? String(prediction))
    },
  }
}

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

test('a line counts what the end of the drain has cut', async () => {
  const server = await startServer({
    models: [modelFolder('gated', 'gated', MODEL)],
    config: { drain_timeout: 1, cancel_grace_ms: 100 },
  })
  await server.ready('gated')
  const { stream } = await heldStream(server)
  expect(await server.stop()).toBe(0)
  expect((await stream.done).complete).toBe(false)
  await server.lines('drain_timeout has passed: 1 requests were disconnected, 1 of them streams')
})

test('new work is refused while what runs goes on: on open connections, on an open call, by inference and management', async () => {
  const server = await startServer({
    models: [ECHO, modelFolder('gated', 'gated', MODEL), sumsFolder()],
    config: { drain_timeout: 600 },
  })
  await Promise.all(['echo', 'gated', 'sums'].map((name) => server.ready(name)))
  const { inference, management } = server.ports
  const { stream, gate } = await heldStream(server)
  const call = await openCall(server)
  const begun = [
    new BegunRequest(inference, 'POST /predictions/echo'),
    new BegunRequest(inference, 'GET /v2/health/ready'),
    new BegunRequest(management, 'GET /models'),
    new BegunRequest(management, 'GET /api-description'),
  ]
  // One answer on each listener: what came before it has been read.
  for (const port of [inference, management]) await rawRequest(port, '/ping', { method: 'GET' })
  const exit = server.stop()
  for (const port of [inference, management]) await refused(server, port)
  // The drain can be watched.
  expect(await server.metric('torchserve_ts_oldest_running_seconds')).toBeGreaterThan(0)
  for (const request of begun) {
    const answer = await request.answer('content-length: 0\r\n\r\n')
    expect(answer).toMatch(/^HTTP\/1\.1 503 /)
    expect(answer).toMatch(/\r\nconnection: close\r\n/i)
  }
  expect(await call.finish('2')).toEqual(['1', 'The server is shutting down'])
  gate.open()
  expect((await stream.done).complete).toBe(true)
  expect(await exit).toBe(0)
})

test('models refuse new work also while nothing but a workflow goes on', async () => {
  const store = new WorkflowStore()
  const server = await startServer({
    models: [sumsFolder()],
    config: { drain_timeout: 600, workflow_store: store.folder },
  })
  await server.ready('sums')
  await store.register(server, 'gated', 'dag: {gated: []}')
  const gate = new Gate()
  const order = json({ id: 'gated', words: gate.path })
  const stream = new RawRequest(server.ports.inference, '/wfpredict/gated', order)
  await stream.gotChunks(1)
  const call = await openCall(server)
  const exit = server.stop()
  await refused(server, server.ports.inference)
  expect(await call.finish('2')).toEqual(['1', 'The server is shutting down'])
  gate.open()
  const { chunks, complete } = await stream.done
  expect([chunks.map(String), complete]).toEqual([['begun', 'end'], true])
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

test('requests that wait for a version are answered by it though it is unregistered meanwhile', async () => {
  const server = await startVersions({ '1.0': {}, '2.0': {} })
  const ask = (path: string, body = '') => rawRequest(server.ports.inference, path, { body })
  const gate = new Gate()
  const answers = [1, 2, 3, 4].map(() => ask('/predictions/m', `gate ${gate.path}`))
  await server.until(
    () => server.describe('m', '/1.0'),
    ([version]) => version!.jobQueueStatus.pendingRequests === 3,
  )
  expect((await server.manage('PUT', '/models/m/2.0/set-default')).status).toBe(200)
  const unregistering = server.manage('DELETE', '/models/m/1.0')
  await server.until(
    () => ask('/predictions/m/1.0'),
    ({ status }) => status === 404,
  )
  expect((await ask('/predictions/m')).status).toBe(200)
  gate.open()
  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200, 200, 200])
  expect((await unregistering).status).toBe(200)
})
