import type { Job } from './job.ts'

/** Jobs that share an id: they go to one worker, in the order in which they came. */
export class Sequence {
  readonly id: string
  readonly waiting = new Set<Job>()
  readonly running = new Set<Job>()
  /** Whether a worker has seen a job of it, so that no other can go on with it. */
  started = false
  /** It takes no more jobs and is gone when those that it has are done. */
  closing = false
  gone = false
  /** The job that has to answer before the next one may go. */
  ahead: Job | undefined
  idleTimer: NodeJS.Timeout | undefined
  lifeTimer: NodeJS.Timeout | undefined

  constructor(id: string) {
    this.id = id
  }

  /** The job that is next to go; undefined: none may go now. */
  get next(): Job | undefined {
    if (this.ahead !== undefined) return undefined
    for (const job of this.waiting) return job
    return undefined
  }

  get isIdle(): boolean {
    return this.waiting.size === 0 && this.running.size === 0
  }

  /** Its oldest job leaves for the worker. */
  begin(): Job {
    const job = this.next!
    this.waiting.delete(job)
    this.running.add(job)
    this.started = true
    this.ahead = job
    return job
  }

  stopTimers(): void {
    clearTimeout(this.idleTimer)
    clearTimeout(this.lifeTimer)
  }
}
