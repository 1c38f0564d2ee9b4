import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals'
import fc from 'fast-check'
import { ServeError } from '../../common/errors.ts'
import { Job } from '../../frontend/jobs/job.ts'
import { JobQueue, type JobQueueOptions } from '../../frontend/jobs/job-queue.ts'
import { FakeWorker } from './fake-worker.ts'

const OPTIONS: JobQueueOptions = {
  capacity: 10,
  batchSize: 1,
  maxBatchDelay: 100,
  timeouts: { queue: 0, firstResponse: 0, gap: 0, total: 0 },
  full: 'full',
}

const failures: string[] = []

function newJob(method: 'handle' | 'describe' = 'handle'): Job {
  return new Job(
    { requestId: 'r', modelName: 'm', method, headers: '', parts: [] },
    {
      whole: () => undefined,
      open: () => undefined,
      write: () => true,
      close: () => undefined,
      fail: (error: ServeError) => failures.push(error.code),
    },
  )
}

function add(queue: JobQueue, job = newJob()): Job {
  queue.add(job)
  return job
}

beforeEach(() => {
  jest.useFakeTimers()
  failures.length = 0
})
afterEach(() => {
  jest.useRealTimers()
})

describe('a queue without batching', () => {
  test('hands out one job at a time, oldest first, at once', () => {
    const queue = new JobQueue(OPTIONS)
    const jobs = [add(queue), add(queue)]
    expect(queue.take()).toEqual([jobs[0]])
    expect(queue.take()).toEqual([jobs[1]])
    expect(queue.take()).toEqual([])
  })

  test('refuses what is over its capacity and leaves that job alone', () => {
    const queue = new JobQueue({ ...OPTIONS, capacity: 1 })
    add(queue)
    expect(() => add(queue)).toThrow(expect.objectContaining({ code: 'QUEUE_FULL', message: 'full' }))
    expect(queue.pending).toBe(1)
    expect(failures).toEqual([])
  })

  test('a job that was cancelled while it waited is never handed out', () => {
    const queue = new JobQueue(OPTIONS)
    add(queue).cancel()
    const second = add(queue)
    expect(queue.take()).toEqual([second])
  })

  test('failAll ends everything that waits', () => {
    const queue = new JobQueue(OPTIONS)
    add(queue)
    add(queue)
    queue.failAll(new ServeError('SHUTTING_DOWN', 'bye'))
    expect(failures).toEqual(['SHUTTING_DOWN', 'SHUTTING_DOWN'])
    expect(queue.pending).toBe(0)
  })
})

describe('a queue with batches', () => {
  test('a full batch is ready at once', () => {
    const queue = new JobQueue({ ...OPTIONS, batchSize: 2 })
    const jobs = [add(queue), add(queue), add(queue)]
    expect(queue.take()).toEqual(jobs.slice(0, 2))
    expect(queue.take()).toEqual([])
  })

  test('a batch that does not fill is announced when its oldest job has waited maxBatchDelay', () => {
    const queue = new JobQueue({ ...OPTIONS, batchSize: 8 })
    const taken: (readonly Job[])[] = []
    queue.serve([
      {
        freeSlots: 1,
        room: 0,
        run: (jobs) => void taken.push(jobs),
        runLater: () => undefined,
        sequenceEnded: () => undefined,
      },
    ])
    const first = add(queue)
    jest.advanceTimersByTime(60)
    const second = add(queue)
    jest.advanceTimersByTime(39)
    expect(taken).toEqual([])
    jest.advanceTimersByTime(2)
    expect(taken).toEqual([[first, second]])
    queue.close()
  })

  test('a batch may wait for longer than timers count, without one that fires again and again', () => {
    const queue = new JobQueue({ ...OPTIONS, batchSize: 8, maxBatchDelay: 3e9 })
    const worker = new FakeWorker('one', 3)
    queue.serve([worker])
    const hand = jest.spyOn(queue, 'hand')
    add(queue)
    hand.mockClear()
    jest.advanceTimersByTime(3e9)
    expect([hand.mock.calls.length, worker.running.length]).toEqual([2, 1])
    queue.close()
  })

  test('the delay of jobs that waited for a worker begins when one is free, and a full batch ends it', () => {
    const queue = new JobQueue({ ...OPTIONS, batchSize: 3 })
    const worker = new FakeWorker('one')
    worker.onFree = () => queue.hand()
    queue.serve([worker])
    const first = Array.from({ length: 3 }, () => add(queue))
    const late = [add(queue), add(queue)]
    jest.advanceTimersByTime(500)
    for (const job of first) worker.release(job)
    jest.advanceTimersByTime(99)
    expect(worker.running).toEqual([])
    late.push(add(queue))
    expect(worker.running).toEqual(late)
    const last = add(queue)
    jest.advanceTimersByTime(500)
    for (const job of late) worker.release(job)
    jest.advanceTimersByTime(99)
    expect(worker.running).toEqual([])
    jest.advanceTimersByTime(2)
    expect(worker.running).toEqual([last])
    queue.close()
  })

  test('each batch that does not fill is announced, and none after the queue has closed', () => {
    const queue = new JobQueue({ ...OPTIONS, batchSize: 8 })
    const worker = new FakeWorker('one', 3)
    queue.serve([worker])
    for (const count of [1, 2]) {
      add(queue)
      jest.advanceTimersByTime(101)
      expect(worker.running).toHaveLength(count)
    }
    add(queue)
    queue.close()
    expect(jest.getTimerCount()).toBe(0)
  })

  test('a batch takes no further request beyond 512 MiB, and the first whatever its size', () => {
    const queue = new JobQueue({ ...OPTIONS, batchSize: 3 })
    const data = Buffer.alloc(200 * 2 ** 20)
    const jobs = [4, 2, 1, 1].map((times) => {
      const job = newJob()
      job.request.parts = Array.from({ length: times }, (_, index) => ({ name: `p${index}`, data }))
      return add(queue, job)
    })
    const worker = new FakeWorker('one', 4)
    queue.serve([worker])
    queue.hand()
    jest.advanceTimersByTime(200)
    expect(worker.batches.map((batch) => [...batch.jobs])).toEqual([[jobs[0]], [jobs[1]], [jobs[2], jobs[3]]])
    queue.close()
  })

  test('a describe shares no batch', () => {
    const queue = new JobQueue({ ...OPTIONS, batchSize: 3 })
    const a = add(queue)
    const describeJob = add(queue, newJob('describe'))
    const b = add(queue)
    const worker = new FakeWorker('one', 4)
    queue.serve([worker])
    queue.hand()
    expect(worker.batches.map(({ jobs }) => [...jobs])).toEqual([[a], [describeJob]])
    jest.advanceTimersByTime(100)
    expect(worker.running).toEqual([a, describeJob, b])
    queue.close()
  })

  test('whatever is added, cancelled and taken: every job leaves once, in order, in batches of the right size', () => {
    const steps = fc.array(
      fc.oneof(fc.constant('add'), fc.constant('take'), fc.constant('wait'), fc.nat(30)),
      {
        maxLength: 60,
      },
    )
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 5 }), (actions, batchSize) => {
        const queue = new JobQueue({ ...OPTIONS, capacity: 1000, batchSize })
        const added: Job[] = []
        const left: Job[] = []
        const worker = new FakeWorker('one', 0)
        worker.onRun = (batch) => {
          expect(batch.length).toBeLessThanOrEqual(batchSize)
          left.push(...batch)
        }
        queue.serve([worker])
        const take = () => {
          worker.slots += 1
          queue.hand()
        }
        for (const action of actions) {
          if (action === 'add') added.push(add(queue))
          else if (action === 'take') take()
          else if (action === 'wait') jest.advanceTimersByTime(50)
          else if (typeof action === 'number') {
            const job = added[action % added.length]
            if (job !== undefined && !left.includes(job)) job.cancel()
          }
        }
        for (const _ of added) take()
        jest.advanceTimersByTime(200)
        const numbers = (jobs: Job[]): number[] => jobs.map((job) => added.indexOf(job))
        expect(numbers(left)).toEqual(numbers(added.filter((job) => !job.ended)))
        expect(queue.pending).toBe(0)
        queue.close()
      }),
    )
  })
})

describe('the workers of a queue', () => {
  test('with a free slot get a job at once, the one with the most of them first; without one they get none', () => {
    const queue = new JobQueue(OPTIONS)
    const [one, two] = [new FakeWorker('one', 1), new FakeWorker('two', 2)]
    queue.serve([one, two])
    const jobs = [add(queue), add(queue), add(queue), add(queue)]
    expect([one.running, two.running]).toEqual([[jobs[1]], [jobs[0], jobs[2]]])
    expect([queue.pending, queue.couldStart()]).toEqual([1, false])
    one.release(jobs[1]!)
    queue.hand()
    expect([one.running, queue.pending]).toEqual([[jobs[3]], 0])
  })

  test('a job that comes waits behind those that wait already', () => {
    const queue = new JobQueue(OPTIONS)
    const worker = new FakeWorker('one')
    const waiting = add(queue)
    queue.serve([worker])
    expect(queue.couldStart()).toBe(false)
    const late = add(queue)
    expect([worker.running, late.startedAt]).toEqual([[waiting], undefined])
  })
})

describe('batches that wait at a busy worker', () => {
  function busy(options: Partial<JobQueueOptions> = {}, mayWait = 2) {
    const queue = new JobQueue({ ...OPTIONS, ...options })
    const worker = new FakeWorker('one')
    worker.mayWait = mayWait
    queue.serve([worker])
    worker.onFree = () => queue.hand()
    const running = Array.from({ length: options.batchSize ?? 1 }, () => add(queue))
    return { queue, worker, running }
  }

  test('are queued until they begin, in order, and what does not fit waits in the queue', () => {
    const { queue, worker, running } = busy({ capacity: 3 })
    const jobs = [add(queue), add(queue), add(queue)]
    expect(worker.waiting.map((batch) => batch.jobs[0])).toEqual(jobs.slice(0, 2))
    expect(queue.pending).toBe(3)
    expect(() => add(queue)).toThrow(expect.objectContaining({ code: 'QUEUE_FULL' }))
    expect(jobs.map((job) => job.startedAt)).toEqual([undefined, undefined, undefined])
    worker.release(running[0]!)
    expect([worker.running, queue.pending]).toEqual([[jobs[0]], 2])
    expect(worker.waiting.map((batch) => batch.jobs[0])).toEqual([jobs[1], jobs[2]])
  })

  test('have their queue time limit all the same', () => {
    const { queue, worker } = busy({ timeouts: { ...OPTIONS.timeouts, queue: 50 } })
    const waiting = add(queue)
    expect(worker.waiting).toHaveLength(1)
    waiting.heldBy(queue)
    jest.advanceTimersByTime(60)
    expect([failures, queue.pending]).toEqual([['QUEUE_TIMEOUT'], 0])
  })

  test('are full: others grow in the queue', () => {
    const { queue, worker } = busy({ batchSize: 2 })
    const first = add(queue)
    jest.advanceTimersByTime(500)
    expect([worker.waiting, queue.pending]).toEqual([[], 1])
    const second = add(queue)
    expect([worker.waiting[0]?.jobs, queue.pending]).toEqual([[first, second], 2])
  })

  test('hold no describe, no job with further inputs, and no large input', () => {
    const { queue, worker } = busy()
    add(queue, newJob('describe'))
    const feed = { connect: () => undefined, taken: () => undefined, waitsForClient: false }
    const fed = newJob()
    fed.request.feed = feed
    queue.take()
    add(queue, fed)
    queue.take()
    const large = newJob()
    large.request.parts = [{ name: 'body', data: Buffer.alloc(65_537) }]
    add(queue, large)
    expect([worker.waiting, queue.pending]).toEqual([[], 1])
    queue.take()
    const small = newJob()
    small.request.parts = [{ name: 'body', data: Buffer.alloc(65_536) }]
    add(queue, small)
    expect(worker.waiting).toHaveLength(1)
  })

  test('that come back keep their places, and a worker that is free takes the oldest', () => {
    const { queue, worker } = busy()
    const jobs = [add(queue), add(queue), add(queue)]
    const other = new FakeWorker('two')
    worker.mayWait = 0
    queue.serve([worker, other])
    jobs[0]!.cancel()
    queue.abandon(jobs[0]!)
    worker.giveBack()
    expect([other.running, queue.pending, queue.take()]).toEqual([[jobs[1]], 1, [jobs[2]]])
  })

  test('that come back to an empty queue are in order, before those that come later', () => {
    const { queue, worker } = busy()
    const jobs = [add(queue), add(queue)]
    worker.mayWait = 0
    worker.giveBack()
    jobs.push(add(queue))
    expect([0, 1, 2].map(() => queue.take())).toEqual(jobs.map((job) => [job]))
  })

  test('fail when the queue is emptied', () => {
    const { queue, worker } = busy()
    const waiting = add(queue)
    expect(worker.waiting).toHaveLength(1)
    waiting.heldBy(queue)
    queue.failAll(new ServeError('NO_WORKER', 'gone'))
    expect([failures, queue.pending]).toEqual([['NO_WORKER'], 0])
    worker.giveBack()
    expect([queue.pending, queue.take()]).toEqual([0, []])
  })
})
