import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { testAdmission } from '../../support/admission.ts'
import { existsSync, readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { ServeError } from '../../../common/errors.ts'
import type { GrpcListenerKind } from '../../../frontend/dialects/grpc-dialect.ts'
import { createGrpcServers } from '../../../frontend/dialects/grpc-servers.ts'
import { FAREWELL_MS } from '../../../frontend/edge/grpc/limits.ts'
import type { GrpcServers } from '../../../frontend/edge/grpc/server.ts'
import { FakeWorkflows } from '../../support/fake-workflows.ts'
import { grpcMessage, RawHttp2 } from '../../support/raw-http2.ts'
import { FakeModels, type Work } from './fake-models.ts'
import { FakeAuthorizer, SETTINGS } from './start-grpc.ts'

const STREAM_INFER = '/inference.GRPCInferenceService/ModelStreamInfer'
/** ModelInferRequest { model_name: "echo" }. */
const MESSAGE = grpcMessage(Buffer.from('\n\u0004echo'))
const WINDOW_UPDATE = 8
const CALLS = 30
/** Small enough to be converted at once, instead of in a thread. */
const BLOCK_BYTES = 100_000
/** More than the buffers of both ends hold, so that the connection is full until its client reads. */
const BLOCKS = Math.ceil((1.2 * (greatestBuffer('rmem') + greatestBuffer('wmem'))) / BLOCK_BYTES)
const FAILURE = new ServeError('HANDLER_FAILED', 'The handler failed')

const models = new FakeModels()
let servers: GrpcServers<GrpcListenerKind>
let raw: RawHttp2
/** The server's end of the connection. */
let accepted: Socket | undefined

/** What Node publishes of every connection that a server accepts. */
function onConnection(message: unknown): void {
  accepted = (message as { socket: Socket }).socket
}

beforeEach(async () => {
  subscribe('net.server.socket', onConnection)
  const log = { debug: () => undefined, error: () => undefined }
  const settings = { ...SETTINGS, openInferenceGrpcPort: 0 }
  const workflows = new FakeWorkflows()
  const authorizer = new FakeAuthorizer()
  models.works.length = 0
  models.onWork = () => undefined
  servers = createGrpcServers({ admission: testAdmission(), models, workflows, authorizer, settings, log })
  raw = new RawHttp2((await servers.listen()).get('open-inference')!.port)
  await raw.ready()
  await raw.ping()
})

afterEach(async () => {
  unsubscribe('net.server.socket', onConnection)
  await raw.destroy()
  await servers.drain()
})

/** Calls whose clients go on sending; each has a job. */
async function open(count: number): Promise<{ streams: number[]; works: Work[] }> {
  const before = models.works.length
  const streams = Array.from({ length: count }, () =>
    raw.call(STREAM_INFER, { 'x-stream-shape': 'mlserver' }),
  )
  for (const stream of streams) raw.data(stream, MESSAGE)
  while (models.works.length < before + count) await new Promise((resolve) => setTimeout(resolve, 5))
  return { streams, works: models.works.slice(before) }
}

/** Bytes to which Linux lets a TCP buffer grow (tcp(7)); elsewhere more than is usual. */
function greatestBuffer(which: 'rmem' | 'wmem'): number {
  const file = `/proc/sys/net/ipv4/tcp_${which}`
  return existsSync(file) ? Number(readFileSync(file, 'utf8').split(/\s+/)[2]) : 12_000_000
}

function answer(text: string): string {
  const outputs = [{ name: 'o', datatype: 'BYTES', shape: [1], data: [text] }]
  return JSON.stringify({ id: 'r', model_name: 'echo', model_version: '1.0', outputs })
}

/** The server may send a large answer, but nothing of it is read. */
async function fillConnection(): Promise<void> {
  const { streams, works } = await open(1)
  for (const stream of [0, ...streams]) {
    const room = Buffer.alloc(4)
    room.writeUInt32BE(2 ** 30)
    raw.frame(WINDOW_UPDATE, 0, stream, room)
  }
  await raw.ping()
  raw.socket.pause()
  const block = answer('a'.repeat(BLOCK_BYTES))
  for (let sent = 0; sent < BLOCKS; sent++) works[0]!.respond(block, true)
  for (let written = -1; written < accepted!.bytesWritten;) {
    written = accepted!.bytesWritten
    await turns()
  }
  expect(accepted!.bytesWritten).toBeLessThan(BLOCKS * BLOCK_BYTES)
}

/** What the server does by itself is done; what its connection has no room for still waits. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await nextTurn()
}

test('a client that is in the middle of a message when its call ends has time to end its side', async () => {
  const { streams, works } = await open(1)
  works[0]!.job.fail(FAILURE)
  await raw.until(() => raw.ended.has(streams[0]!))
  raw.data(streams[0]!, MESSAGE.subarray(0, 3))
  await raw.ping()
  expect([...raw.resets.keys()]).toEqual([])
  await raw.until(() => raw.resets.has(streams[0]!))
})

test.each<[string, (work: Work) => void]>([
  ['fail', ({ job }) => job.fail(FAILURE)],
  [
    'fail after an answer',
    (work) => {
      work.respond(answer('a'), true)
      work.job.fail(FAILURE)
    },
  ],
])('calls that %s together behind a large answer have their status, then close', async (_what, fail) => {
  const { streams, works } = await open(CALLS)
  await fillConnection()
  for (const work of works) fail(work)
  await turns()
  raw.socket.resume()
  await raw.until(() => streams.every((stream) => raw.resets.has(stream)))
  expect(streams.filter((stream) => !raw.ended.has(stream))).toEqual([])
  expect(raw.closed).toBe(false)
})

test('a call whose status waits for longer than its client has to end its side closes after it', async () => {
  const { streams, works } = await open(1)
  await fillConnection()
  works[0]!.job.fail(FAILURE)
  await turns()
  // Node fires timers of one length in the order in which they began: the call's own has fired before.
  await wait(FAREWELL_MS)
  raw.socket.resume()
  await raw.until(() => raw.resets.has(streams[0]!))
  expect(raw.ended.has(streams[0]!)).toBe(true)
})
