import { expect } from '@jest/globals'
import { joinHeaders, splitHeaders } from '../../common/headers.ts'
import { ServeError } from '../../common/errors.ts'
import { Job } from '../../frontend/jobs/job.ts'
import { SequenceQueue, type SequenceQueueOptions } from '../../frontend/jobs/sequence-queue.ts'
import { FakeWorker } from './fake-worker.ts'

export const HEADERS = { id: 'seq-id', start: 'seq-start', end: 'seq-end' }
const OPTIONS: SequenceQueueOptions = {
  maxSequences: 10,
  maxWaiting: 5,
  maxIdleMs: 1000,
  maxLifeMs: 0,
  batchSize: 1,
  maxBatchDelay: 100,
  overlap: false,
  headers: HEADERS,
  timeouts: { queue: 0, firstResponse: 0, gap: 0, total: 0 },
  modelName: 'm',
}
const CRASH = new ServeError('WORKER_LOST', 'Worker died.')
/** Codes of the jobs that failed. */
export const failures = new Map<Job, string>()

/** @param identity the sender's; default: none */
export function newJob(
  id?: string,
  more: Record<string, string> = {},
  alone = false,
  identity?: string,
): Job {
  const headers = joinHeaders(id === undefined ? more : { [HEADERS.id]: id, ...more })
  const sender = { address: '127.0.0.1', keyName: identity, identity }
  const job: Job = new Job(
    { requestId: 'r', sender, modelName: 'm', method: 'handle', headers, parts: [], alone },
    {
      whole: () => undefined,
      open: () => undefined,
      write: () => true,
      close: () => undefined,
      fail: (error) => failures.set(job, error.code),
    },
  )
  return job
}

/** The sequence that a job belongs to. */
export function sequenceOf(job: Job): string {
  return splitHeaders(job.request.headers)[HEADERS.id]!
}

/** A queue with workers, and what tests do with it. */
export class Setup {
  /** All jobs in the order in which workers got them. */
  readonly started: Job[] = []
  readonly queue: SequenceQueue
  readonly workers: FakeWorker[]

  constructor(options: Partial<SequenceQueueOptions> = {}, workers = 2, slots = 1) {
    this.queue = new SequenceQueue({ ...OPTIONS, ...options })
    this.workers = Array.from({ length: workers }, (_, i) => new FakeWorker(`w${i}`, slots))
    for (const worker of this.workers) {
      worker.onFree = () => this.queue.hand()
      worker.onRun = (jobs) => {
        this.started.push(...jobs)
        for (const job of jobs) worker.sequences.add(sequenceOf(job))
      }
    }
    this.queue.serve(this.workers)
  }

  add(id?: string, more?: Record<string, string>, identity?: string): Job {
    const job = newJob(id, more, false, identity)
    this.queue.add(job)
    return job
  }

  /** The worker died: its jobs fail, and it is a new one at once. */
  crash(worker: FakeWorker): void {
    const lost = worker.batches.splice(0)
    worker.sequences.clear()
    this.queue.workerLost(worker, CRASH)
    for (const { jobs, watcher } of lost) {
      for (const job of jobs) {
        job.fail(CRASH)
        watcher?.released(job)
      }
    }
    this.queue.hand()
  }

  refused(id?: string): void {
    expect(() => this.add(id)).toThrow(expect.objectContaining({ code: 'QUEUE_FULL', retryAfterMs: 1000 }))
  }

  workerOf(job: Job): FakeWorker | undefined {
    return this.workers.find((worker) => worker.running.includes(job))
  }

  answer(job: Job, headers?: Record<string, string>): Readonly<Record<string, string>> {
    return this.workerOf(job)!.answer(job, false, headers)
  }

  /** Adds a job that runs at once, and answers it. */
  round(id?: string, headers?: Record<string, string>): FakeWorker {
    const job = this.add(id)
    const worker = this.workerOf(job)!
    worker.answer(job, false, headers)
    return worker
  }
}
