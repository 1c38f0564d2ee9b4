import { randomBytes } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import type { GrpcListenerKind } from '../../../frontend/dialects/grpc-dialect.ts'
import { createGrpcServers } from '../../../frontend/dialects/grpc-servers.ts'
import type { GrpcServers } from '../../../frontend/edge/grpc/server.ts'
import type { ClientAdmission } from '../../../frontend/edge/admission/admission.ts'
import { TIMES } from '../../../frontend/edge/grpc/limits.ts'
import { testAdmission } from '../../support/admission.ts'
import { FakeWorkflows } from '../../support/fake-workflows.ts'
import { grpcMessage, RawHttp2 } from '../../support/raw-http2.ts'
import { FakeModels } from './fake-models.ts'
import { FakeAuthorizer, SETTINGS } from './start-grpc.ts'

const SERVICE = '/inference.GRPCInferenceService'
/** ModelInferRequest { model_name: "echo" }. */
const MESSAGE = grpcMessage(Buffer.from('\n\u0004echo'))
/** More than grpc-js reads ahead of its handler. */
const AHEAD = 40
const ENHANCE_YOUR_CALM = 11
const ANSWER = JSON.stringify({ id: 'r', model_name: 'echo', model_version: '1.0', outputs: [] })

let models: FakeModels
let servers: GrpcServers<GrpcListenerKind>
let raw: RawHttp2
let admission: ClientAdmission

beforeEach(async () => {
  models = new FakeModels()
  models.onWork = () => undefined
  admission = testAdmission()
  servers = createGrpcServers({
    models,
    workflows: new FakeWorkflows(),
    authorizer: new FakeAuthorizer(),
    settings: { ...SETTINGS, openInferenceGrpcPort: 0 },
    admission,
    times: { ...TIMES, messageMs: 200 },
    log: { debug: () => undefined, error: () => undefined },
  })
  raw = new RawHttp2((await servers.listen()).get('open-inference')!.port)
  await raw.ready()
})

afterEach(async () => {
  await raw.destroy()
  await servers.drain()
})

/** Memory that the server counts, of calls and of messages that nobody has read. */
function waiting(): number {
  return admission.requests.held
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5))
}

/** A stream whose first request runs, so that the server does not read the ones after it. */
async function stream(): Promise<number> {
  const id = raw.call(`${SERVICE}/ModelStreamInfer`)
  raw.data(id, MESSAGE)
  await until(() => models.works.length === 1)
  return id
}

/** Each request of the stream is answered as it comes, those that wait too. */
function answerAll(): void {
  models.onWork = (work) => work.respond(ANSWER)
  models.works[0]!.respond(ANSWER)
}

test('messages that wait for the one before them count until they are read', async () => {
  const id = await stream()
  const call = waiting()
  raw.data(id, Buffer.concat(new Array<Buffer>(AHEAD).fill(MESSAGE)))
  await raw.ping()
  expect(waiting()).toBeGreaterThan(call + MESSAGE.byteLength)
  answerAll()
  await until(() => models.works.length === AHEAD + 1)
  await until(() => waiting() === call)
})

test('a message that the server does not read may take longer than the limit, and one that it reads may not', async () => {
  const held = await stream()
  raw.data(held, Buffer.concat(new Array<Buffer>(AHEAD).fill(MESSAGE)))
  raw.data(held, MESSAGE.subarray(0, 7))
  await raw.ping()
  const slow = raw.call(`${SERVICE}/ModelStreamInfer`)
  raw.data(slow, MESSAGE.subarray(0, 7))
  await raw.until(() => raw.ended.has(slow))
  await raw.ping()
  expect(raw.over(held)).toBe(false)
  answerAll()
  await raw.until(() => raw.ended.has(held))
  expect(models.works).toHaveLength(AHEAD + 1)
})

test('a unary call that is ended before its request is whole is closed when its client goes on sending', async () => {
  const id = raw.call(`${SERVICE}/ModelInfer`)
  raw.data(id, MESSAGE.subarray(0, 7))
  await raw.until(() => raw.ended.has(id))
  expect(raw.resets.has(id)).toBe(false)
  await raw.until(() => raw.resets.has(id))
  expect(raw.resets.get(id)).toBe(ENHANCE_YOUR_CALM)
  await until(() => waiting() === 0)
})

test('a call whose compressed message fails gives back the room of those behind it at once', async () => {
  const id = raw.call(`${SERVICE}/ModelStreamInfer`, { 'grpc-encoding': 'gzip' })
  await raw.ping()
  const call = waiting()
  const damaged = grpcMessage(Buffer.alloc(1_000, 'x'), { compressed: true })
  const whole = grpcMessage(gzipSync(randomBytes(1_000)), { compressed: true })
  raw.data(id, Buffer.concat([damaged, ...new Array<Buffer>(20).fill(whole)]))
  await raw.until(() => raw.ended.has(id))
  // Of one at a time beside the damaged one decompression may have begun.
  expect([waiting() < call + 3 * whole.byteLength, raw.resets.has(id)]).toEqual([true, false])
  await until(() => waiting() === 0)
})

test('the handler of a unary call may take longer than its message may', async () => {
  const id = raw.call(`${SERVICE}/ModelInfer`)
  raw.data(id, MESSAGE)
  raw.endStream(id)
  await until(() => models.works.length === 1)
  // Five times the limit of a message.
  await new Promise((resolve) => setTimeout(resolve, 1_000))
  expect(raw.ended.has(id)).toBe(false)
})

test('the message of a unary call counts until its handler has it', async () => {
  const id = raw.call(`${SERVICE}/ModelInfer`)
  await raw.ping()
  const ofCall = waiting()
  raw.data(id, MESSAGE)
  raw.endStream(id)
  await until(() => models.works.length === 1)
  expect(waiting()).toBe(ofCall)
})

test('compressed messages of a stream that were read count no more', async () => {
  const id = raw.call(`${SERVICE}/ModelStreamInfer`, { 'grpc-encoding': 'gzip' })
  await raw.ping()
  const ofCall = waiting()
  models.onWork = (work) => work.respond(ANSWER)
  const message = grpcMessage(gzipSync(MESSAGE.subarray(5)), { compressed: true })
  for (let i = 0; i < 5; i += 1) raw.data(id, message)
  await until(() => models.works.length === 5)
  await raw.ping()
  expect(waiting()).toBe(ofCall)
})
