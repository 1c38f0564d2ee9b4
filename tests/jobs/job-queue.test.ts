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
  refusal: () => 'full',
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
    queue.serve([{ freeSlots: 1, run: (jobs) => void taken.push(jobs) }])
    const first = add(queue)
    jest.advanceTimersByTime(60)
    const second = add(queue)
    jest.advanceTimersByTime(39)
    expect(taken).toEqual([])
    jest.advanceTimersByTime(2)
    expect(taken).toEqual([[first, second]])
    queue.close()
  })

  test('a describe shares no batch', () => {
    const queue = new JobQueue({ ...OPTIONS, batchSize: 3 })
    const a = add(queue)
    const describeJob = add(queue, newJob('describe'))
    const b = add(queue)
    expect(queue.take()).toEqual([a])
    expect(queue.take()).toEqual([describeJob])
    jest.advanceTimersByTime(100)
    expect(queue.take()).toEqual([b])
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
        const take = () => {
          const batch = queue.take()
          expect(batch.length).toBeLessThanOrEqual(batchSize)
          left.push(...batch)
          return batch.length
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
        jest.advanceTimersByTime(200)
        while (take() > 0);
        const numbers = (jobs: Job[]): number[] => jobs.map((job) => added.indexOf(job))
        expect(numbers(left)).toEqual(numbers(added.filter((job) => !job.ended)))
        expect(queue.pending).toBe(0)
        queue.close()
      }),
    )
  })
})

describe('the workers of a queue', () => {
  test('with a free slot get a job at once, the freest first; without one they get none', () => {
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
    const late = add(queue)
    expect([worker.running, [...queue.jobs()]]).toEqual([[waiting], [late]])
  })
})
