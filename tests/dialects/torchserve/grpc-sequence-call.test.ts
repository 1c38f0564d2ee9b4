import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { status as Status } from '@grpc/grpc-js'
import { splitHeaders } from '../../../common/headers.ts'
import { ServeError } from '../../../common/errors.ts'
import {
  call,
  type GrpcDuplex,
  type PredictionResponse,
  type PredictionsRequest,
  readAll,
} from '../../support/grpc-clients.ts'
import type { Work } from '../../edge/grpc/fake-models.ts'
import { DEADLINE_MS, startGrpc, token, type RunningGrpc } from '../../edge/grpc/start-grpc.ts'

let grpc: RunningGrpc
let works: Work[]
let arrived: () => void

beforeEach(async () => {
  grpc = await startGrpc()
  works = []
  grpc.models.onWork = (work) => {
    works.push(work)
    arrived()
  }
  arrived = () => undefined
})

afterEach(() => grpc.close())

const open = (...options: unknown[]): GrpcDuplex<PredictionsRequest, PredictionResponse> =>
  grpc.inference.StreamPredictions2(...options)

function message(sequenceId: string | undefined, data: string | Record<string, string>): PredictionsRequest {
  const input = typeof data === 'string' ? { data } : data
  return {
    model_name: 'echo',
    input: Object.fromEntries(Object.entries(input).map(([name, text]) => [name, Buffer.from(text)])),
    sequence_id: sequenceId,
  }
}

/** Waits until that many jobs have been submitted. */
async function jobs(count: number): Promise<Work[]> {
  while (works.length < count) await new Promise<void>((resolve) => (arrived = resolve))
  return works
}

/** The next message that the call gets. */
function next(call: GrpcDuplex<PredictionsRequest, PredictionResponse>): Promise<PredictionResponse> {
  return new Promise((resolve) => call.once('data', (data) => resolve(data as PredictionResponse)))
}

/** What the server could read before this began, it has read when this ends, if it reads at all. */
async function roundTrips(): Promise<void> {
  for (let k = 0; k < 5; k += 1) await call(grpc.inference, grpc.inference.Ping, {})
}

const texts = (messages: PredictionResponse[]) =>
  messages.map(({ sequence_id: id, prediction }) => `${id}: ${prediction.toString()}`)

describe('a call of StreamPredictions2', () => {
  test('makes a job of every message; replies carry the sequence id, in the order in which they come', async () => {
    const call = open()
    const all = readAll(call)
    for (const id of ['a', 'b']) call.write(message(id, `of ${id}`))
    const [a, b] = await jobs(2)
    expect([a!, b!].map(({ parts }) => Buffer.from(parts[0]!.data).toString())).toEqual(['of a', 'of b'])
    expect(splitHeaders(a!.job.request.headers)).toMatchObject({ ts_request_sequence_id: 'a' })
    b!.respond('one', true)
    a!.respond('whole')
    b!.respond('two', false)
    call.end()
    expect(texts((await all).messages)).toEqual(['b: one', 'a: whole', 'b: two'])
  })

  test('ends after the last reply when the client has closed its side, not before', async () => {
    const call = open()
    const all = readAll(call)
    call.write(message('a', 'x'))
    call.end()
    const [work] = await jobs(1)
    work!.respond('1', true)
    work!.respond('2', false)
    expect(await all).toMatchObject({ messages: [{ sequence_id: 'a' }, { sequence_id: 'a' }] })
  })

  test('goes on after it had nothing to do', async () => {
    const call = open()
    for (const text of ['1', '2']) {
      call.write(message('a', text))
      const work = (await jobs(Number(text))).at(-1)!
      const reply = next(call)
      work.respond(text)
      expect((await reply).prediction.toString()).toBe(text)
    }
    const all = readAll(call)
    call.end()
    expect(await all).toEqual({ messages: [] })
  })

  test('without any message ends well', async () => {
    const call = open()
    const all = readAll(call)
    call.end()
    expect(await all).toEqual({ messages: [] })
  })

  test('needs the inference token', async () => {
    grpc.authorizer.enabled = true
    const refused = readAll(open())
    expect((await refused).error).toMatchObject({ code: Status.PERMISSION_DENIED })
    const allowed = open(token('inference'))
    const all = readAll(allowed)
    allowed.end()
    expect((await all).error).toBeUndefined()
  })
})

describe('errors', () => {
  test('a message without a sequence id is told so, and the call goes on', async () => {
    const call = open()
    const refusal = next(call)
    call.write(message(undefined, 'x'))
    const { status, prediction } = await refusal
    expect(status).toMatchObject({ code: 13, message: 'Parameter sequenceId is required.' })
    expect(status!.details[0]!.type_url).toBe('type.googleapis.com/google.rpc.ErrorInfo')
    expect(status!.details[0]!.value.toString('latin1')).toBe('\x0a\x16BadRequestException.()')
    expect(prediction).toHaveLength(0)
    const all = readAll(call)
    call.write(message('a', 'x'))
    call.end()
    const [work] = await jobs(1)
    work!.respond('fine')
    expect(texts((await all).messages)).toEqual(['a: fine'])
  })

  test.each([
    [new ServeError('QUEUE_FULL', 'no room'), Status.UNAVAILABLE, 'InternalServerException.()'],
    [
      new ServeError('MODEL_NOT_FOUND', 'Model not found: echo'),
      Status.INTERNAL,
      'org.pytorch.serve.archive.model.ModelNotFoundException',
    ],
  ])('a refused job is a message: %s', async (error, code, reason) => {
    grpc.models.failure = error
    const call = open()
    const refusal = next(call)
    call.write(message('a', 'x'))
    const { status, sequence_id: id } = await refusal
    expect(status).toMatchObject({ code, message: error.message })
    expect(status!.details[0]!.value.toString('latin1')).toContain(reason)
    expect(id).toBe('a')
    call.end()
    await readAll(call)
  })

  test('a job that fails after its first item is a message too', async () => {
    const call = open()
    const all = readAll(call)
    call.write(message('a', 'x'))
    call.end()
    const [work] = await jobs(1)
    work!.respond('1', true)
    work!.job.fail(new ServeError('HANDLER_FAILED', 'Prediction failed'))
    const { messages, error } = await all
    expect(error).toBeUndefined()
    expect(messages[1]!.status).toMatchObject({ code: Status.UNAVAILABLE, message: 'Prediction failed' })
  })
})

describe('sequence marks', () => {
  test('of the inputs become headers; an id is chosen where a sequence starts without one', async () => {
    const call = open()
    call.write(message(undefined, { ts_request_sequence_start: 'True', data: 'x' }))
    call.write(message('a', { ts_request_sequence_end: 'true' }))
    const [first, last] = (await jobs(2)).map(({ job }) => splitHeaders(job.request.headers))
    expect(first).toMatchObject({
      ts_request_sequence_id: expect.stringMatching(/^ts-seq-/),
      ts_request_sequence_start: 'true',
    })
    expect(last).toMatchObject({ ts_request_sequence_id: 'a', ts_request_sequence_end: 'true' })
    expect(last).not.toHaveProperty('ts_request_sequence_start')
    const reply = next(call)
    works[0]!.respond('x')
    expect((await reply).sequence_id).toBe(first!['ts_request_sequence_id'])
    works[1]!.respond('y')
    call.end()
    await readAll(call)
  })

  test('a unary call may name its sequence too', async () => {
    grpc.models.onWork = (work) => {
      works.push(work)
      work.respond('ok')
    }
    await readAll(grpc.inference.StreamPredictions(message('a', 'x')))
    expect(splitHeaders(works[0]!.job.request.headers)).toMatchObject({
      ts_request_sequence_id: 'a',
    })
  })
})

describe('cancellation and flow', () => {
  test('cancelling the call cancels its jobs, all of them', async () => {
    const call = open()
    const all = readAll(call)
    for (const id of ['a', 'b']) call.write(message(id, 'x'))
    const [a, b] = await jobs(2)
    a!.respond('1', true)
    call.cancel()
    expect(await Promise.all([a!.abandoned, b!.abandoned])).toEqual(['client left', 'client left'])
    expect((await all).error).toMatchObject({ code: Status.CANCELLED })
  })

  test('the deadline of the call is that of its jobs', async () => {
    await call(grpc.inference, grpc.inference.Ping, {}) // the connection stands before the deadline runs
    const stream = open({ deadline: Date.now() + DEADLINE_MS })
    const all = readAll(stream)
    stream.write(message('a', 'x'))
    const [work] = await jobs(1)
    expect(await work!.abandoned).toBe('deadline')
    expect((await all).error).toMatchObject({ code: Status.DEADLINE_EXCEEDED })
  })

  test('no more than 64 jobs are open at a time; the next are read as replies go out', async () => {
    const call = open()
    const all = readAll(call)
    for (let i = 0; i < 200; i += 1) call.write(message('a', String(i)))
    call.end()
    await jobs(64)
    await roundTrips()
    expect(works).toHaveLength(64)
    let done = 0
    for (; done < 200; done += 1) {
      await jobs(done + 1)
      expect(works.length - done).toBeLessThanOrEqual(64)
      works[done]!.respond(String(done))
    }
    expect((await all).messages.map(({ prediction }) => Number(prediction))).toEqual(
      Array.from({ length: 200 }, (_, i) => i),
    )
  })

  test('a client that does not read its replies stops its handlers, not its neighbours', async () => {
    const call = open()
    call.write(message('a', 'x'))
    const [work] = await jobs(1)
    const item = Buffer.alloc(16_384)
    const paused = next(call).then(() => call.pause())
    work!.respond(item, true)
    await paused
    let sent = 0
    while (work!.respond(item, true)) {
      sent += item.byteLength
      expect(sent).toBeLessThan(4_000_000)
      await new Promise(setImmediate)
    }
    // One message is read before the call notices that it is full.
    for (let i = 0; i < 5; i += 1) call.write(message('a', 'x'))
    await roundTrips()
    expect(works.length).toBeLessThanOrEqual(2)
    const drained = new Promise<void>((resolve) => (work!.onDrained = resolve))
    const all = readAll(call)
    call.resume()
    await drained
    work!.respond('', false)
    for (const other of (await jobs(6)).slice(1)) other.respond('y')
    call.end()
    expect((await all).error).toBeUndefined()
  })
})
