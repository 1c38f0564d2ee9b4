import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals'
import { ServeError } from '../../common/errors.ts'
import type { FromWorker } from '../../protocol/messages.ts'
import type { InputFeed, InputPort } from '../../frontend/jobs/job-request.ts'
import type { Job } from '../../frontend/jobs/job.ts'
import { jobLimits } from '../../frontend/jobs/time-limit.ts'
import type { BatchOwner } from '../../frontend/jobs/scheduler.ts'
import { WORK_AHEAD_MS } from '../../frontend/workers/batches-ahead.ts'
import { type RequestSettings, Requests } from '../../frontend/workers/requests.ts'
import type { FirstRankMessage, RankMessage } from '../../frontend/workers/worker-group.ts'
import { testJob, type TestJob } from '../support/jobs.ts'

const GRACE_MS = 5000
const LAG_MS = 30_000

/** The requests of a worker whose ranks are this test. */
class Rig {
  readonly sent: (RankMessage | FirstRankMessage)[] = []
  readonly failures: string[] = []
  readonly killed: string[] = []
  frees = 0
  discarded = 0
  readonly requests: Requests

  constructor(settings: Partial<RequestSettings> = {}, ranks = 1, isNative = true) {
    this.requests = new Requests(
      {
        streamWindowSize: 1000,
        credentialHeaders: new Set(),
        batchesAhead: 16,
        cancelGraceMs: GRACE_MS,
        responseTimeout: LAG_MS / 1000,
        continuousBatching: false,
        maxConcurrency: 1,
        ...settings,
      },
      {
        isNative,
        takesBatchesAhead: isNative,
        finishingRanks: ranks,
        send: (message) => void this.sent.push(message),
        sendToFirst: (message) => void this.sent.push(message),
      },
      {
        onFree: () => (this.frees += 1),
        onFailure: ({ request }, error) => this.failures.push(`${request.requestId} ${error.code}`),
        forClient: (error) => error,
        onTimeout: ({ request }) => this.failures.push(`${request.requestId} timed out`),
        kill: (why) => this.killed.push(why),
        onDiscarded: () => (this.discarded += 1),
      },
    )
  }

  /** Runs a batch of jobs with these ids; their numbers are 1, 2, ... in order. */
  run(...ids: string[]): TestJob[] {
    const jobs = ids.map((id) => testJob(id))
    this.requests.run(jobs.map(({ job }) => job))
    return jobs
  }

  item(id: number, body = 'item', rank = 0): void {
    const chunk = Buffer.from(body)
    this.requests.itemsOf(rank)(id, chunk, 0, chunk.byteLength)
  }

  answer(id: number, rank = 0): void {
    this.requests.receive(rank, { type: 'response', id, body: Buffer.from('answer') })
  }

  fail(id: number, rank = 0): void {
    const error = new ServeError('HANDLER_FAILED', 'Prediction failed').toWire()
    this.requests.receive(rank, { type: 'failure', id, error })
  }

  finished(rank: number, ...ids: number[]): void {
    for (const id of ids) this.requests.receive(rank, { type: 'finished', id })
  }

  sentOf(type: string): FromWorker[] | object[] {
    return this.sent.filter((message) => message.type === type)
  }
}

beforeEach(() => {
  jest.useFakeTimers()
})

afterEach(() => {
  jest.useRealTimers()
})

describe('a batch', () => {
  test('is one message: numbers, ids, methods, inputs, the window', () => {
    const rig = new Rig()
    rig.run('a', 'b')
    const request = (id: number, requestId: string) => ({
      ...{ method: 'handle', id, requestId, headers: '', window: 1000 },
      parts: [{ name: 'data', data: Buffer.from(requestId) }],
    })
    expect(rig.sent).toEqual([{ type: 'predict', requests: [request(1, 'a'), request(2, 'b')] }])
  })

  test('takes one slot until the last of its requests has finished', () => {
    const rig = new Rig()
    const [a, b] = rig.run('a', 'b')
    rig.answer(2)
    expect([rig.requests.batches, rig.requests.size, rig.frees]).toEqual([1, 1, 0])
    expect(rig.requests.jobs()).toEqual([a!.job])
    rig.answer(1)
    expect([rig.requests.batches, rig.requests.size, rig.frees]).toEqual([0, 0, 1])
    expect([a!.sink.calls, b!.sink.calls]).toEqual([['whole 200 answer'], ['whole 200 answer']])
  })

  test('answers find their requests by number, whatever their order; one for nobody is dropped', () => {
    const rig = new Rig()
    const [a] = rig.run('a')
    const [b] = rig.run('b')
    rig.item(2, 'for b')
    rig.item(99, 'for nobody')
    rig.answer(99)
    rig.answer(1)
    expect([a!.sink.calls, b!.sink.calls]).toEqual([['whole 200 answer'], ['open 200', 'write for b']])
  })

  test('each request says which method of the handler it wants', () => {
    const rig = new Rig()
    rig.requests.run([testJob('a', { method: 'explain' }).job, testJob('b').job])
    expect(rig.sent).toMatchObject([{ requests: [{ method: 'explain' }, { method: 'handle' }] }])
  })

  test('a deadline goes with its request', () => {
    const rig = new Rig()
    rig.requests.run([testJob('d', { deadline: 123 }).job])
    expect(rig.sent).toMatchObject([{ requests: [{ deadline: 123 }] }])
  })

  test('its watcher hears of each request that is released, once', () => {
    const rig = new Rig()
    const released: string[] = []
    const jobs = [testJob('a').job, testJob('b').job]
    rig.requests.run(jobs, {
      answering: (_job, headers) => headers,
      released: ({ request }) => released.push(request.requestId),
    })
    rig.answer(2)
    expect(released).toEqual(['b'])
    rig.requests.failAll(new ServeError('WORKER_LOST', 'Worker died.'))
    expect(released).toEqual(['b', 'a'])
  })
})

describe('a failure of the handler', () => {
  test('reaches the client and the operator, and frees the slot', () => {
    const rig = new Rig()
    const [a] = rig.run('a')
    rig.fail(1)
    expect(a!.sink.calls).toEqual(['fail HANDLER_FAILED Prediction failed'])
    expect([rig.failures, rig.requests.batches, rig.frees]).toEqual([['a HANDLER_FAILED'], 0, 1])
  })

  test('of a request that nobody waits for is not told', () => {
    const rig = new Rig()
    const [a] = rig.run('a')
    a!.job.cancel()
    rig.fail(1)
    expect([rig.failures, rig.frees]).toEqual([[], 1])
  })

  test('a request that cannot be answered any more fails at once, and its handler is told to stop', () => {
    const rig = new Rig()
    const [a] = rig.run('a')
    rig.requests.broken(1, new ServeError('SEND_OVERFLOW', 'too much'))
    expect(a!.sink.calls).toEqual(['fail SEND_OVERFLOW too much'])
    expect(rig.sentOf('cancel')).toEqual([{ type: 'cancel', id: 1, reason: 'failed' }])
    expect([rig.failures, rig.requests.batches]).toEqual([['a SEND_OVERFLOW'], 1])
    rig.requests.broken(1, new ServeError('SEND_OVERFLOW', 'too much'))
    expect(rig.failures).toHaveLength(1)
  })
})

describe('a worker that sends without credit', () => {
  test('fails that request and is not trusted any more', () => {
    const rig = new Rig()
    const [a, b] = rig.run('a', 'b')
    for (const { sink } of [a!, b!]) sink.room = false
    rig.item(1, 'x'.repeat(2000))
    rig.item(2)
    expect(rig.killed).toEqual([])
    rig.item(1)
    rig.item(1)
    expect([rig.failures, rig.killed.length]).toEqual([['a PROTOCOL'], 1])
    expect(rig.killed[0]).toContain('request a: ')
    expect([a!.job.outcome, b!.job.outcome]).toEqual(['failed', undefined])
  })

  test('breaks no rule if its protocol knows no credit', () => {
    const rig = new Rig({}, 1, false)
    const [a] = rig.run('a')
    a!.sink.room = false
    for (let k = 0; k < 5; k += 1) rig.item(1, 'x'.repeat(2000))
    expect([rig.failures, rig.killed, a!.job.outcome]).toEqual([[], [], undefined])
  })
})

describe('a request that nobody waits for', () => {
  test('is cancelled with its reason and keeps its slot until its handler has returned', () => {
    const rig = new Rig()
    const [a] = rig.run('a')
    a!.job.cancel('deadline')
    expect(rig.sentOf('cancel')).toEqual([{ type: 'cancel', id: 1, reason: 'deadline' }])
    expect([rig.requests.batches, rig.requests.jobs()]).toEqual([1, []])
    rig.answer(1)
    expect([rig.requests.batches, rig.discarded]).toEqual([0, 1])
  })

  test('makes the worker deaf when its handler has not returned after the grace, not before', () => {
    const rig = new Rig()
    rig.run('a')[0]!.job.cancel()
    jest.advanceTimersByTime(GRACE_MS - 1)
    expect(rig.killed).toEqual([])
    jest.advanceTimersByTime(1)
    expect(rig.killed).toEqual([
      `a cancelled request ran for longer than ${GRACE_MS} ms; the worker is restarted`,
    ])
  })

  test('no harm is done when the handler returns in time', () => {
    const rig = new Rig()
    rig.run('a')[0]!.job.cancel()
    jest.advanceTimersByTime(GRACE_MS - 1)
    rig.answer(1)
    jest.advanceTimersByTime(10 * GRACE_MS)
    expect(rig.killed).toEqual([])
  })

  test('of a batch: the grace begins when nobody waits for any of them', () => {
    const rig = new Rig()
    const [a, b] = rig.run('a', 'b')
    a!.job.cancel()
    jest.advanceTimersByTime(10 * GRACE_MS)
    expect(rig.killed).toEqual([])
    b!.job.cancel()
    jest.advanceTimersByTime(GRACE_MS - 1)
    expect(rig.killed).toEqual([])
    jest.advanceTimersByTime(1)
    expect(rig.killed).toHaveLength(1)
  })

  test('beside neighbours that share the worker: it has as long as they run, and the grace again', () => {
    const rig = new Rig({ continuousBatching: true })
    const [a] = rig.run('a')
    rig.run('b')
    a!.job.cancel()
    jest.advanceTimersByTime(3 * GRACE_MS + 1)
    rig.answer(2)
    expect(rig.killed).toEqual([])
    jest.advanceTimersByTime(GRACE_MS - 2)
    expect(rig.killed).toEqual([])
    jest.advanceTimersByTime(1)
    expect(rig.killed).toHaveLength(1)
  })

  test('neighbours that do not share the worker do not lengthen the grace', () => {
    const rig = new Rig()
    const [a] = rig.run('a')
    rig.run('b')
    a!.job.cancel()
    jest.advanceTimersByTime(GRACE_MS)
    expect(rig.killed).toHaveLength(1)
  })
})

describe('where handlers do not hear of a cancel', () => {
  const SILENCE_MS = 10_000
  const options = { cancelGraceMs: undefined, responseTimeout: SILENCE_MS / 1000 }

  test('a cancelled request may go on as long as it gives signs', () => {
    const rig = new Rig(options, 1, false)
    rig.run('a')[0]!.job.cancel()
    for (let k = 0; k < 10; k += 1) {
      jest.advanceTimersByTime(SILENCE_MS - 1)
      rig.item(1)
    }
    expect([rig.killed, rig.discarded]).toEqual([[], 10])
    jest.advanceTimersByTime(2 * SILENCE_MS)
    expect(rig.killed).toEqual([
      `a cancelled request sent nothing for ${SILENCE_MS} ms; the worker is restarted`,
    ])
  })

  test('silence before the cancel counts, but a sign has a second to come', () => {
    const rig = new Rig(options, 1, false)
    const [a] = rig.run('a')
    jest.advanceTimersByTime(SILENCE_MS - 3000)
    a!.job.cancel()
    jest.advanceTimersByTime(2999)
    expect(rig.killed).toEqual([])
    jest.advanceTimersByTime(1)
    expect(rig.killed).toHaveLength(1)
    const late = new Rig(options, 1, false)
    const [b] = late.run('b')
    jest.advanceTimersByTime(10 * SILENCE_MS)
    b!.job.cancel()
    jest.advanceTimersByTime(999)
    expect(late.killed).toEqual([])
    jest.advanceTimersByTime(1)
    expect(late.killed).toHaveLength(1)
  })

  test('neighbours in the same steps may be why it is silent', () => {
    const rig = new Rig({ ...options, continuousBatching: true }, 1, false)
    const [a] = rig.run('a')
    rig.run('b')
    a!.job.cancel()
    jest.advanceTimersByTime(5 * SILENCE_MS)
    expect(rig.killed).toEqual([])
    rig.answer(2)
    jest.advanceTimersByTime(SILENCE_MS)
    expect(rig.killed).toHaveLength(1)
  })
})

describe('several ranks', () => {
  test('answers count from rank 0 only', () => {
    const rig = new Rig({}, 2)
    const [a] = rig.run('a')
    rig.item(1, 'of rank 1', 1)
    rig.answer(1, 1)
    rig.fail(1, 1)
    expect([a!.sink.calls, rig.failures, rig.requests.batches]).toEqual([[], [], 1])
    rig.item(1, 'of rank 0')
    expect(a!.sink.calls).toEqual(['open 200', 'write of rank 0'])
  })

  test('a slot is free when every rank has finished, in whatever order', () => {
    const rig = new Rig({}, 3)
    rig.run('a')
    rig.finished(1, 1)
    rig.answer(1)
    expect(rig.frees).toBe(0)
    rig.finished(2, 1)
    expect([rig.frees, rig.requests.batches]).toEqual([1, 0])
    jest.advanceTimersByTime(10 * LAG_MS)
    expect(rig.killed).toEqual([])
  })

  test('that rank 0 says `finished` does not count beside its answer', () => {
    const rig = new Rig({}, 2)
    rig.run('a')
    rig.finished(0, 1)
    rig.answer(1)
    expect(rig.frees).toBe(0)
  })

  test('a rank that hangs after rank 0 has answered makes the worker deaf after the lag', () => {
    const rig = new Rig({}, 2)
    rig.run('a')
    rig.answer(1)
    jest.advanceTimersByTime(LAG_MS - 1)
    expect(rig.killed).toEqual([])
    jest.advanceTimersByTime(1)
    expect(rig.killed).toHaveLength(1)
  })

  test('the others are told to stop when rank 0 has failed, and have the grace', () => {
    const rig = new Rig({}, 2)
    rig.run('a')
    rig.fail(1)
    expect(rig.sentOf('cancel')).toEqual([{ type: 'cancel', id: 1, reason: 'failed' }])
    jest.advanceTimersByTime(GRACE_MS)
    expect(rig.killed).toHaveLength(1)
  })
})

describe('a worker that is gone', () => {
  test('fails everything that it had, and nothing of it comes later', () => {
    const rig = new Rig()
    const [a] = rig.run('a')
    const [b] = rig.run('b')
    b!.job.cancel()
    rig.requests.failAll(new ServeError('WORKER_LOST', 'Worker died.'))
    expect([a!.sink.calls, b!.sink.calls]).toEqual([['fail WORKER_LOST Worker died.'], []])
    expect([rig.requests.size, rig.requests.batches, rig.frees]).toEqual([0, 0, 0])
    jest.advanceTimersByTime(10 * GRACE_MS)
    rig.answer(1)
    rig.item(2)
    expect([rig.killed, rig.discarded]).toEqual([[], 0])
  })

  test('is sent no cancel and no input any more', () => {
    const rig = new Rig()
    const feed = new Feed()
    const { job } = testJob('a', { feed })
    rig.requests.run([job])
    rig.requests.failAll(new ServeError('WORKER_LOST', 'Worker died.'))
    const { length } = rig.sent
    job.cancel()
    feed.port!.input(Buffer.from('late'))
    expect(rig.sent).toHaveLength(length)
  })
})

test('further inputs go to the worker, and what the handler has taken back to their client', () => {
  const rig = new Rig()
  const feed = new Feed()
  rig.requests.run([testJob('a', { feed }).job])
  expect(rig.sent).toMatchObject([{ requests: [{ moreInputs: true }] }])
  feed.port!.input(Buffer.from('more'))
  feed.port!.input(undefined)
  expect(rig.sentOf('input')).toEqual([
    { type: 'input', id: 1, data: Buffer.from('more') },
    { type: 'input', id: 1 },
  ])
  rig.requests.receive(1, { type: 'taken', id: 1, inputs: 5 })
  rig.requests.receive(0, { type: 'taken', id: 1, inputs: 2 })
  expect(feed.takes).toEqual([2])
})

class Feed implements InputFeed {
  readonly waitsForClient = false
  port: InputPort | undefined
  readonly takes: number[] = []

  connect(port: InputPort): void {
    this.port = port
  }

  taken(inputs: number): void {
    this.takes.push(inputs)
  }
}

describe('a batch that waits behind the running one', () => {
  const queue = () => {
    const told: string[] = []
    const ids = (jobs: readonly Job[]): string => jobs.map(({ request }) => request.requestId).join(' ')
    const owner: BatchOwner = {
      began: (jobs) => told.push(`began ${ids(jobs)}`),
      returned: (jobs) => told.push(`returned ${ids(jobs)}`),
      abandon: ({ request }) => told.push(`abandoned ${request.requestId}`),
      drained: () => undefined,
    }
    return { told, owner }
  }

  /** r1 runs, and each of the others waits in a batch of its own. */
  function waiting(...ids: string[]) {
    const rig = new Rig()
    const [first] = rig.run('r1')
    const { told, owner } = queue()
    const later = ids.map((id) => testJob(id))
    for (const { job } of later) {
      job.queued(owner, jobLimits({ queue: 0, firstResponse: 0, gap: 0, total: 0 }))
      rig.requests.runLater([job], owner)
    }
    return { rig, first: first!, told, later, jobs: later.map(({ job }) => job) }
  }

  test('is sent at once and begins, in order, when the one before it has ended', () => {
    const { rig, told, jobs } = waiting('r2', 'r3')
    expect(rig.sentOf('predict')).toEqual([
      expect.not.objectContaining({ after: true }),
      expect.objectContaining({ after: true }),
      expect.objectContaining({ after: true }),
    ])
    expect([rig.requests.batches, rig.requests.running, rig.requests.size]).toEqual([1, 1, 3])
    expect(jobs.map(({ startedAt }) => startedAt)).toEqual([undefined, undefined])
    rig.answer(1)
    expect([told, jobs[0]!.startedAt, jobs[1]!.startedAt]).toEqual([
      ['began r2'],
      expect.any(Number),
      undefined,
    ])
    expect([rig.requests.batches, rig.frees]).toEqual([1, 1])
    rig.answer(2)
    rig.answer(3)
    expect([told, rig.requests.size, rig.requests.batches]).toEqual([['began r2', 'began r3'], 0, 0])
    expect(jobs.map(({ outcome }) => outcome)).toEqual(['finished', 'finished'])
  })

  test('whose client leaves is asked back once; the worker gives it back and it never begins', () => {
    const { rig, told, jobs } = waiting('r2', 'r3')
    jobs[0]!.cancel()
    jobs[1]!.cancel()
    expect([told, rig.sentOf('withdraw')]).toEqual([
      ['abandoned r2', 'abandoned r3'],
      [
        { type: 'withdraw', ids: [2] },
        { type: 'withdraw', ids: [3] },
      ],
    ])
    expect([rig.sent.slice(-4).map(({ type }) => type), jest.getTimerCount()]).toEqual([
      ['withdraw', 'cancel', 'withdraw', 'cancel'],
      1,
    ])
    rig.requests.receive(0, { type: 'withdrawn', ids: [2] })
    expect(told.at(-1)).toBe('returned r2')
    rig.answer(1)
    expect([told.at(-1), rig.requests.size]).toEqual(['began r3', 1])
  })

  test('whose client left when it had begun at the worker is cancelled there', () => {
    const { rig, jobs } = waiting('r2')
    jobs[0]!.cancel()
    rig.answer(1)
    const cancel = { type: 'cancel', id: 2, reason: 'client left' }
    expect([rig.sentOf('cancel'), rig.requests.batches]).toEqual([[cancel, cancel], 1])
    jest.advanceTimersByTime(GRACE_MS)
    expect(rig.killed).toHaveLength(1)
    rig.fail(2)
    expect([rig.requests.size, rig.requests.batches, rig.failures]).toEqual([0, 0, []])
  })

  test('is taken back from a batch that takes long, and only then', () => {
    const { rig, told } = waiting('r2', 'r3')
    jest.advanceTimersByTime(WORK_AHEAD_MS - 1)
    expect([rig.sentOf('withdraw'), rig.requests.room < 0]).toEqual([[], true])
    jest.advanceTimersByTime(1)
    expect(rig.sentOf('withdraw')).toEqual([{ type: 'withdraw', ids: [2, 3] }])
    jest.advanceTimersByTime(10 * WORK_AHEAD_MS)
    expect(rig.sentOf('withdraw')).toHaveLength(1)
    rig.requests.receive(0, { type: 'withdrawn', ids: [2, 3] })
    expect(told).toEqual(['returned r2 r3'])
    expect(jest.getTimerCount()).toBe(1)
    jest.advanceTimersByTime(WORK_AHEAD_MS)
    expect(jest.getTimerCount()).toBe(0)
  })

  test('stays with a worker whose batches are short', () => {
    const { rig } = waiting('r2', 'r3')
    jest.advanceTimersByTime(WORK_AHEAD_MS - 1)
    rig.answer(1)
    jest.advanceTimersByTime(WORK_AHEAD_MS - 1)
    rig.answer(2)
    expect(rig.sentOf('withdraw')).toEqual([])
  })

  test('comes back when the worker dies, and the running one fails', () => {
    const { rig, first, told, jobs } = waiting('r2', 'r3')
    rig.requests.failAll(new ServeError('WORKER_LOST', 'Worker died.'))
    expect(first.job.outcome).toBe('failed')
    expect([told, jobs.map(({ ended }) => ended)]).toEqual([['returned r2 r3'], [false, false]])
    expect([rig.requests.size, jest.getTimerCount()]).toEqual([0, 0])
  })

  test('that is answered before it began is a breach', () => {
    const { rig, told } = waiting('r2')
    rig.answer(2)
    expect([rig.killed, told]).toEqual([['request r2 was answered before it began'], []])
  })

  test('keeps its inputs until it begins', () => {
    const { rig, jobs } = waiting('r2')
    expect(jobs[0]!.request.parts).toHaveLength(1)
    rig.answer(1)
    expect(jobs[0]!.request.parts).toEqual([])
  })

  test('has more room the shorter the batches were, none behind a long one', () => {
    const rig = new Rig()
    const run = (ms: number): number => {
      rig.run('r')
      const { room } = rig.requests
      jest.advanceTimersByTime(ms)
      rig.answer(rig.sentOf('predict').length)
      return room
    }
    expect([rig.requests.room, run(0.1)]).toEqual([0, 1])
    for (let i = 0; i < 40; i += 1) run(0.1)
    expect(run(0.1)).toBe(16)
    expect(run(50)).toBe(16)
    expect(Array.from({ length: 10 }, () => run(0.1))).toEqual(Array(10).fill(0))
  })
})
