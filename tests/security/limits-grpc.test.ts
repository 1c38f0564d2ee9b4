import { type Metadata, status as Status } from '@grpc/grpc-js'
import { afterEach, expect, test } from '@jest/globals'
import type { RateLimits } from '../../frontend/auth/principal.ts'
import { RateLimiter } from '../../frontend/auth/rate-limiter.ts'
import { startGrpc, token, type RunningGrpc } from '../edge/grpc/start-grpc.ts'
import {
  call,
  inferenceV2Client,
  readAll,
  type GrpcError,
  type Message,
  type PredictionResponse,
} from '../support/grpc-clients.ts'
import { namedCallers } from '../support/named-callers.ts'

let grpc: RunningGrpc
const clients: { close(): void }[] = []

afterEach(async () => {
  for (const client of clients.splice(0)) client.close()
  await grpc.close()
})

async function start(callers: Record<string, RateLimits | undefined>) {
  const clock = { now: 0 }
  const limiter = new RateLimiter({ key: {}, now: () => clock.now })
  const settings = { tritonGrpcPort: 0, openInferenceGrpcPort: 0 }
  grpc = await startGrpc(settings, { authorizer: namedCallers(callers), limiter })
  return clock
}

interface Outcome {
  code: number
  retryAfter: unknown
  pushback: unknown
}

/** The status of a call, with the metadata that say when to come back. */
async function outcome(work: Promise<unknown>): Promise<Outcome> {
  try {
    await work
    return { code: Status.OK, retryAfter: undefined, pushback: undefined }
  } catch (error) {
    const { code, metadata } = error as GrpcError & { metadata: Metadata }
    const [retryAfter] = metadata.get('retry-after')
    return { code, retryAfter, pushback: metadata.get('grpc-retry-pushback-ms')[0] }
  }
}

const REFUSED: Outcome = { code: Status.RESOURCE_EXHAUSTED, retryAfter: '10', pushback: '10000' }

function predict(name: string, data = 'x'): Promise<unknown> {
  const request = { model_name: 'echo', input: { data: Buffer.from(data) } }
  return call(grpc.inference, grpc.inference.Predictions, request, token(name))
}

test('each service refuses with RESOURCE_EXHAUSTED and the time to come back', async () => {
  await start({ slow: { requestsPerSecond: 0.1 } })
  const { inference, management, bound } = grpc
  await predict('slow')
  expect(await outcome(predict('slow'))).toEqual(REFUSED)
  expect(await outcome(call(inference, inference.Ping, {}, token('slow')))).toEqual(REFUSED)
  expect(await outcome(call(management, management.ListModels, {}, token('slow')))).toEqual(REFUSED)
  const stream = inference.StreamPredictions({ model_name: 'echo', input: {} }, token('slow'))
  expect((await readAll(stream)).error).toMatchObject({ code: Status.RESOURCE_EXHAUSTED })
  for (const [kind, shape] of [
    ['open-inference', 'mlserver'],
    ['triton', 'triton'],
  ] as const) {
    const client = inferenceV2Client(bound.get(kind)!.port, shape)
    clients.push(client)
    expect(await outcome(call(client, client['ServerLive']!, {}, token('slow')))).toEqual(REFUSED)
  }
})

test('two keys on one connection: what one may not do, the other still may', async () => {
  await start({ limited: { requestsPerSecond: 5 }, free: undefined })
  const names = Array.from({ length: 60 }, (_, i) => (i % 2 === 0 ? 'limited' : 'free'))
  const outcomes = await Promise.all(
    names.map(async (name) => `${name} ${(await outcome(predict(name))).code}`),
  )
  const count = (text: string): number => outcomes.filter((each) => each === text).length
  expect(count(`limited ${Status.OK}`)).toBe(5)
  expect(count(`limited ${Status.RESOURCE_EXHAUSTED}`)).toBe(25)
  expect(count(`free ${Status.OK}`)).toBe(30)
})

test('a stream counts as open until it has ended', async () => {
  await start({ one: { concurrentStreams: 1 }, other: { concurrentStreams: 1 } })
  let end: () => void = () => undefined
  grpc.models.onWork = (work) => {
    work.respond('item', true)
    end = () => void work.respond('', false)
  }
  const stream = grpc.inference.StreamPredictions({ model_name: 'echo', input: {} }, token('one'))
  await new Promise((resolve) => stream.once('data', resolve))
  const finish = end
  grpc.models.onWork = (work) => void work.respond('ok')
  expect(await outcome(predict('one'))).toMatchObject({ code: Status.RESOURCE_EXHAUSTED, retryAfter: '1' })
  expect(await outcome(predict('other'))).toMatchObject({ code: Status.OK })
  const all = readAll(stream)
  finish()
  await all
  // The client knows the end a little before the server's stream is closed.
  let code: number
  do ({ code } = await outcome(predict('one')))
  while (code === REFUSED.code)
  expect(code).toBe(Status.OK)
})

test('bytes of requests and responses are paid after they have moved, by their own key only', async () => {
  const clock = await start({ a: { bytesPerSecond: 1_000 }, b: { bytesPerSecond: 1_000 } })
  grpc.models.onWork = (work) => void work.respond('y'.repeat(30_000))
  expect(await outcome(predict('a', 'x'.repeat(20_000)))).toMatchObject({ code: Status.OK })
  const refused = await outcome(predict('a'))
  expect(refused.code).toBe(Status.RESOURCE_EXHAUSTED)
  expect(Number(refused.retryAfter)).toBeGreaterThanOrEqual(50)
  expect(Number(refused.retryAfter)).toBeLessThan(51)
  grpc.models.onWork = (work) => void work.respond('ok')
  expect(await outcome(predict('b'))).toMatchObject({ code: Status.OK })
  clock.now += 51_000
  expect(await outcome(predict('a'))).toMatchObject({ code: Status.OK })
})

test('messages of a stream that are requests count like requests; the stream goes on', async () => {
  const clock = await start({ some: { requestsPerSecond: 3 } })
  const stream = grpc.inference.StreamPredictions2(token('some'))
  const answers: PredictionResponse[] = []
  const got = async (count: number): Promise<PredictionResponse[]> => {
    while (answers.length < count) await new Promise((resolve) => stream.once('data', resolve))
    return answers
  }
  stream.on('data', (answer) => answers.push(answer))
  const send = (sequenceId: string): void => {
    stream.write({ model_name: 'echo', input: { data: Buffer.from('x') }, sequence_id: sequenceId })
  }
  for (const id of ['1', '2', '3', '4', '5']) send(id)
  const codes = (await got(5)).map((answer) => answer.status?.code ?? 0)
  expect(codes).toEqual([0, 0, 0, Status.RESOURCE_EXHAUSTED, Status.RESOURCE_EXHAUSTED])
  clock.now += 1_000
  send('6')
  expect((await got(6))[5]!.prediction.toString()).toBe('ok')
  stream.end()
})

test('the same for Triton’s stream', async () => {
  await start({ some: { requestsPerSecond: 2 } })
  const client = inferenceV2Client(grpc.bound.get('triton')!.port, 'triton')
  clients.push(client)
  const stream = client.ModelStreamInfer(token('some'))
  for (const id of ['1', '2', '3']) stream.write({ model_name: 'echo', id, inputs: [] })
  stream.end()
  const { messages } = await readAll<Message>(stream)
  const errors = messages.map(({ error_message: text }) => String(text))
  expect(errors.filter((text) => text.includes('may start 2 requests each second'))).toHaveLength(1)
})

test('reflection can ask for the token of its listener; health never does', async () => {
  grpc = await startGrpc(
    { grpcReflectionRequireToken: true },
    { authorizer: namedCallers({ someone: undefined }) },
  )
  const ask = (path: string, name?: string): Promise<number> =>
    new Promise((resolve) => {
      const asItIs = (bytes: Buffer): Buffer => bytes
      const rpc = grpc.inference.makeBidiStreamRequest(path, asItIs, asItIs, token(name ?? ''))
      rpc.on('data', () => undefined).on('error', () => undefined)
      rpc.on('status', ({ code }: { code: number }) => resolve(code))
      rpc.write(Buffer.alloc(0))
      rpc.end()
    })
  for (const version of ['v1', 'v1alpha']) {
    const path = `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`
    expect(await ask(path)).toBe(Status.UNAUTHENTICATED)
    expect(await ask(path, 'someone')).toBe(Status.OK)
  }
  expect(await ask('/grpc.health.v1.Health/Check')).toBe(Status.OK)
})
