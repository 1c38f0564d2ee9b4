import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals'
import { ServeError } from '../../common/errors.ts'
import { Job } from '../../frontend/jobs/job.ts'
import type { JobHolder } from '../../frontend/jobs/scheduler.ts'
import { jobLimits, type JobTimeouts } from '../../frontend/jobs/time-limit.ts'
import type { ReplySink, JobResponse } from '../../frontend/jobs/reply-sink.ts'

const NO_LIMITS: JobTimeouts = { queue: 0, firstResponse: 0, gap: 0, total: 0 }

/** Records what a job tells its client. */
class RecordingSink implements ReplySink {
  readonly calls: string[] = []
  room = true

  whole(head: { status: number }, body: Uint8Array): void {
    this.calls.push(`whole ${head.status} ${Buffer.from(body).toString()}`)
  }

  open(head: { status: number }): void {
    this.calls.push(`open ${head.status}`)
  }

  write(chunk: Uint8Array, from: number, to: number): boolean {
    this.calls.push(`write ${Buffer.from(chunk.subarray(from, to)).toString()}`)
    return this.room
  }

  close(): void {
    this.calls.push('close')
  }

  fail(error: ServeError): void {
    this.calls.push(`fail ${error.code}`)
  }
}

class RecordingHolder implements JobHolder {
  readonly calls: string[] = []

  abandon(_job: Job, reason: string): void {
    this.calls.push(`abandon ${reason}`)
  }

  drained(): void {
    this.calls.push('drained')
  }
}

function response(body: string, more?: boolean, status = 200): JobResponse {
  return { body: Buffer.from(body), more, status, headers: {} }
}

function runningJob(timeouts = NO_LIMITS): { job: Job; sink: RecordingSink; holder: RecordingHolder } {
  const sink = new RecordingSink()
  const holder = new RecordingHolder()
  const job = new Job({ requestId: 'r', modelName: 'm', method: 'handle', headers: '', parts: [] }, sink)
  job.queued(new RecordingHolder(), jobLimits(timeouts))
  job.started(holder)
  return { job, sink, holder }
}

describe('the end of a job', () => {
  test('a response without a stream mark is the whole answer', () => {
    const { job, sink } = runningJob()
    job.respond(response('hi', undefined, 201))
    expect(sink.calls).toEqual(['whole 201 hi'])
    expect(job.outcome).toBe('finished')
  })

  test.each([
    ['client left', 'cancelled'],
    ['deadline', 'timed_out'],
    ['timeout', 'timed_out'],
  ] as const)(
    'because of %s: it has %s, its work is stopped, and the client hears nothing',
    (why, outcome) => {
      const { job, sink, holder } = runningJob()
      job.cancel(why)
      expect([job.outcome, holder.calls, sink.calls]).toEqual([outcome, [`abandon ${why}`], []])
    },
  )

  test('a stream opens with the head of its first item and closes after its last', () => {
    const { job, sink } = runningJob()
    job.respond(response('a', true, 202))
    job.respond(response('b', true, 500))
    job.respond(response('', false))
    expect(sink.calls).toEqual(['open 202', 'write a', 'write b', 'write ', 'close'])
    expect(job.streaming).toBe(true)
  })

  test('a first item that is the last one is a whole answer (TorchServe leaves the client hanging)', () => {
    const { job, sink } = runningJob()
    job.respond(response('only', false))
    expect(sink.calls).toEqual(['whole 200 only'])
  })

  test.each<[string, (job: Job) => void]>([
    ['an answer', (job) => job.respond(response('late'))],
    ['a failure', (job) => job.fail(new ServeError('HANDLER_FAILED', 'late'))],
    ['a cancel', (job) => job.cancel()],
    ['a shutdown', (job) => job.abort(new ServeError('SHUTTING_DOWN', 'x'), 'shutdown')],
    ['room', (job) => job.drained()],
  ])('nothing follows the end: %s', (_name, late) => {
    const { job, sink, holder } = runningJob()
    let ends = 0
    job.opened({ ended: () => (ends += 1) })
    job.fail(new ServeError('HANDLER_FAILED', 'x'))
    late(job)
    expect(sink.calls).toEqual(['fail HANDLER_FAILED'])
    expect(holder.calls).toEqual([])
    expect(ends).toBe(1)
    expect(job.outcome).toBe('failed')
  })

  test('a cancelled job tells its holder and not its client', () => {
    const { job, sink, holder } = runningJob()
    job.respond(response('a', true))
    job.cancel()
    job.respond(response('b', true))
    expect(sink.calls).toEqual(['open 200', 'write a'])
    expect(holder.calls).toEqual(['abandon client left'])
    expect(job.outcome).toBe('cancelled')
  })

  test('a shutdown tells both', () => {
    const { job, sink, holder } = runningJob()
    job.abort(new ServeError('SHUTTING_DOWN', 'x'), 'shutdown')
    expect(sink.calls).toEqual(['fail SHUTTING_DOWN'])
    expect(holder.calls).toEqual(['abandon shutdown'])
  })
})

describe('a full client', () => {
  test('is reported to the holder, and so is its room', () => {
    const { job, sink, holder } = runningJob()
    sink.room = false
    expect(job.respond(response('a', true))).toBe(false)
    job.drained()
    expect(holder.calls).toEqual(['drained'])
  })
})

describe('the four time limits', () => {
  beforeEach(() => {
    jest.useFakeTimers()
  })
  afterEach(() => {
    jest.useRealTimers()
  })

  test('the queue limit ends a job that waits, and stops counting when it starts', () => {
    const sink = new RecordingSink()
    const job = new Job({ requestId: 'r', modelName: 'm', method: 'handle', headers: '', parts: [] }, sink)
    job.queued(new RecordingHolder(), jobLimits({ ...NO_LIMITS, queue: 100 }))
    job.waits()
    jest.advanceTimersByTime(99)
    expect(sink.calls).toEqual([])
    jest.advanceTimersByTime(1)
    expect(sink.calls).toEqual(['fail QUEUE_TIMEOUT'])

    const other = runningJob({ ...NO_LIMITS, queue: 100 })
    jest.advanceTimersByTime(1000)
    expect(other.sink.calls).toEqual([])
  })

  test('the first response has its own limit', () => {
    const { sink, holder } = runningJob({ ...NO_LIMITS, firstResponse: 100, gap: 10 })
    jest.advanceTimersByTime(100)
    expect(sink.calls).toEqual(['fail RESPONSE_TIMEOUT'])
    expect(holder.calls).toEqual(['abandon timeout'])
  })

  test('a sign of life starts the first response and the gap anew', () => {
    const { job, sink } = runningJob({ ...NO_LIMITS, firstResponse: 100, gap: 100 })
    const signs = () => {
      for (let k = 0; k < 5; k += 1) {
        jest.advanceTimersByTime(90)
        job.alive()
      }
    }
    signs()
    job.respond(response('a', true))
    signs()
    expect(job.ended).toBe(false)
    jest.advanceTimersByTime(100)
    expect(sink.calls.at(-1)).toBe('fail RESPONSE_TIMEOUT')
    job.alive()

    const queued = new Job(
      { requestId: 'r', modelName: 'm', method: 'handle', headers: '', parts: [] },
      new RecordingSink(),
    )
    queued.queued(new RecordingHolder(), jobLimits({ ...NO_LIMITS, queue: 100 }))
    queued.waits()
    jest.advanceTimersByTime(90)
    queued.alive()
    jest.advanceTimersByTime(10)
    expect([queued.errorCode, queued.errorText]).toEqual([
      'QUEUE_TIMEOUT',
      expect.stringContaining('Timed out after 0.1 s'),
    ])
  })

  test('every item starts the gap anew', () => {
    const { job, sink } = runningJob({ ...NO_LIMITS, firstResponse: 5, gap: 100 })
    job.respond(response('a', true))
    jest.advanceTimersByTime(90)
    job.respond(response('b', true))
    jest.advanceTimersByTime(90)
    expect(job.ended).toBe(false)
    jest.advanceTimersByTime(10)
    expect(sink.calls.at(-1)).toBe('fail RESPONSE_TIMEOUT')
    expect(job.outcome).toBe('timed_out')
  })

  test('what a client takes starts the gap anew: a slow one is not taken for a silent handler', () => {
    const { job, sink } = runningJob({ ...NO_LIMITS, gap: 100 })
    sink.room = false
    job.respond(response('a', true))
    for (let k = 0; k < 5; k += 1) {
      jest.advanceTimersByTime(90)
      job.drained()
    }
    expect(job.ended).toBe(false)
    jest.advanceTimersByTime(100)
    expect([sink.calls.at(-1), job.outcome]).toEqual(['fail RESPONSE_TIMEOUT', 'timed_out'])
  })

  test.each(['gap', 'total'] as const)('a client that does not read has stalled: %s', (limit) => {
    const { job, sink, holder } = runningJob({ ...NO_LIMITS, [limit]: 100 })
    sink.room = false
    job.respond(response('a', true))
    jest.advanceTimersByTime(100)
    expect([job.outcome, job.errorCode, sink.calls.at(-1)]).toEqual([
      'client_stalled',
      'CLIENT_STALLED',
      'fail CLIENT_STALLED',
    ])
    expect(holder.calls).toEqual(['abandon timeout'])
  })

  test.each(['gap', 'firstResponse'] as const)('so has one whose next input is missing: %s', (limit) => {
    const { job, sink } = runningJob({ ...NO_LIMITS, [limit]: 100 })
    job.request.feed = { connect: () => undefined, taken: () => undefined, waitsForClient: true }
    if (limit === 'gap') job.respond(response('a', true))
    jest.advanceTimersByTime(100)
    expect([job.outcome, sink.calls.at(-1)]).toEqual(['client_stalled', 'fail CLIENT_STALLED'])
  })

  test('items that are nothing but a body start the gap anew too', () => {
    const { job, sink } = runningJob({ ...NO_LIMITS, gap: 100 })
    job.respond(response('a', true))
    for (let k = 0; k < 5; k += 1) {
      jest.advanceTimersByTime(90)
      job.item(Buffer.from('xby'), 1, 2)
    }
    expect([job.ended, sink.calls.at(-1)]).toEqual([false, 'write b'])
    jest.advanceTimersByTime(100)
    expect(job.outcome).toBe('timed_out')
  })

  test('the gap is not limited before the first item, nor the first response after it', () => {
    const early = runningJob({ ...NO_LIMITS, gap: 100 })
    jest.advanceTimersByTime(1000)
    expect(early.job.ended).toBe(false)
    const { job } = runningJob({ ...NO_LIMITS, firstResponse: 100 })
    job.respond(response('a', true))
    jest.advanceTimersByTime(1000)
    expect(job.ended).toBe(false)
  })

  test('the whole request has a limit that items do not move', () => {
    const { job, sink } = runningJob({ ...NO_LIMITS, total: 100 })
    jest.advanceTimersByTime(60)
    job.respond(response('a', true))
    jest.advanceTimersByTime(40)
    expect(sink.calls.at(-1)).toBe('fail REQUEST_TIMEOUT')
  })

  test('no timer runs on after any end', () => {
    const limits = { queue: 1000, firstResponse: 1000, gap: 1000, total: 1000 }
    runningJob(limits).job.cancel()
    runningJob(limits).job.fail(new ServeError('HANDLER_FAILED', 'x'))
    const streamed = runningJob(limits).job
    streamed.respond(response('a', true))
    streamed.respond(response('', false))
    jest.advanceTimersByTime(1000)
    expect(jest.getTimerCount()).toBe(0)
  })
})
