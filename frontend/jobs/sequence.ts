import type { Job } from './job.ts'
import type { Lane } from './lane.ts'

/** Jobs with the same sequence id. They go to one worker, in the order in which they arrived. */
export class Sequence {
  readonly id: string
  /** Whose it is: `identity` of the sender of its first job. */
  readonly owner: string | undefined
  readonly waiting = new Set<Job>()
  readonly running = new Set<Job>()
  /** Jobs with which their client begins the sequence, also where it is open already. */
  readonly first = new WeakSet<Job>()
  /** Whether a worker has got one of its jobs, so that no other worker can continue it. */
  started = false
  /** It accepts no more jobs and ends when its present jobs are done. */
  closing = false
  gone = false
  /** The worker that keeps its state, bound when its first job is about to start. */
  lane: Lane | undefined
  /** The job that must answer before the next one may start. */
  ahead: Job | undefined
  idleTimer: NodeJS.Timeout | undefined
  lifeTimer: NodeJS.Timeout | undefined

  constructor(id: string, owner: string | undefined) {
    this.id = id
    this.owner = owner
  }

  /** The job to start next; undefined if none may start now. */
  get next(): Job | undefined {
    if (this.ahead !== undefined) return undefined
    const [job] = this.waiting
    return job !== undefined && this.first.has(job) && this.running.size > 0 ? undefined : job
  }

  /** Whether the job to start next begins it once more: the state in the worker is that of its past. */
  get beginsAnew(): boolean {
    return this.started && this.first.has(this.next!)
  }

  get isIdle(): boolean {
    return this.waiting.size === 0 && this.running.size === 0
  }

  /** Its oldest job goes to the worker. */
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
