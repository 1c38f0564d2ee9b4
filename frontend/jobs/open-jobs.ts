import { ServeError } from '../../common/errors.ts'
import { PassingMap, PassingSet } from '../../common/maps.ts'
import { startTimer } from '../../common/timer.ts'
import type { Distribution } from '../observe/metrics/tally.ts'
import type { JobSpan } from '../observe/traces/tracing.ts'
import type { Job } from './job.ts'
import { memoryBytes } from '../../common/processors.ts'
import { inputBytes } from './job-request.ts'

/** The model version or workflow that a job is for. */
export interface JobOwner {
  /** Absent: a workflow. */
  readonly version?: string
  /** Whether a request may be repeated after it has begun. Default false. */
  readonly idempotent?: boolean
  /** Records the gaps between items, in seconds. */
  readonly gaps?: Distribution
  /** Begins the span of a job; absent: tracing is off. */
  readonly trace?: ((job: Job) => JobSpan) | undefined
  /** Called once, when the job ends. */
  ended(job: Job): void
}

const SHUTTING_DOWN = new ServeError('SHUTTING_DOWN', 'The server is shutting down')

/** Jobs that a drain has failed, and how many of them were streams. */
export interface CutJobs {
  readonly requests: number
  readonly streams: number
}

/**
 * The open jobs of one model or workflow. A stopping server waits for them and then ends them. They are also
 * in the server's index of jobs.
 */
export class OpenJobs {
  readonly #index: JobIndex
  readonly #owner: JobOwner
  readonly #jobs = new PassingSet<Job>()
  /** Those who wait: a model that ends may be in a server that ends. */
  readonly #whenEmpty = new Set<() => void>()

  /** @param owner of the jobs that are added */
  constructor(index: JobIndex, owner: JobOwner) {
    this.#index = index
    this.#owner = {
      ...owner,
      ended: (job) => {
        this.#leave(job)
        owner.ended(job)
        if (this.#jobs.size === 0) for (const done of this.#whenEmpty) done()
      },
    }
  }

  get size(): number {
    return this.#jobs.size
  }

  /** performance.now() at which the first of those that run went to a worker; undefined: none runs. */
  get runningSince(): number | undefined {
    let first = Infinity
    for (const { startedAt = Infinity } of this.#jobs) first = Math.min(first, startedAt)
    return first === Infinity ? undefined : first
  }

  /** How many streams have begun, and what the open jobs have answered so far. */
  progress(): { streams: number; items: number; bytes: number } {
    const sum = { streams: 0, items: 0, bytes: 0 }
    for (const job of this.#jobs) {
      if (job.streaming) sum.streams += 1
      sum.items += job.items
      sum.bytes += job.bytes
    }
    return sum
  }

  /** Adds a job before anything is done with it. @throws ServeError of JobIndex.enter */
  add(job: Job): void {
    this.#index.enter(job)
    this.#jobs.add(job)
    job.opened(this.#owner)
  }

  /** The queue refused the job, so it was never open. */
  withdraw(job: Job, { code }: ServeError): void {
    job.refused(code)
    this.#leave(job)
  }

  /** Waits until all jobs have ended, for at most `graceMs`. @returns how much of it is left */
  async settled(graceMs: number): Promise<number> {
    if (this.#jobs.size === 0 || graceMs <= 0) return graceMs
    const begun = performance.now()
    await new Promise<void>((resolve) => {
      const done = (): void => {
        clearTimeout(timer)
        this.#whenEmpty.delete(done)
        resolve()
      }
      const timer = startTimer(done, graceMs)
      this.#whenEmpty.add(done)
    })
    return Math.max(0, begun + graceMs - performance.now())
  }

  /**
   * Waits until all jobs have ended, for at most `graceMs`; then fails the rest with `reason`. Default: the
   * server is shutting down.
   * @returns how many it failed, and how many of them were streams
   */
  async drain(graceMs: number, reason = SHUTTING_DOWN): Promise<CutJobs> {
    await this.settled(graceMs)
    const rest = [...this.#jobs]
    const streams = rest.filter((job) => job.streaming).length
    for (const job of rest) job.abort(reason, 'shutdown')
    return { requests: rest.length, streams }
  }

  #leave(job: Job): void {
    this.#index.leave(job)
    this.#jobs.delete(job)
  }
}

const LEAST_DEFAULT_BYTES = 2 ** 28
/** Share of the memory that inputs may take by default. */
const DEFAULT_SHARE = 16
/** Smaller inputs do not ask all workers for what they have not taken. */
const LARGE_BYTES = 65_536

/**
 * Bounds the bytes of all requests together that wait for a worker, are on their way to one, or are kept for
 * further nodes of a workflow. Each queue bounds its number of requests only.
 */
export class InputBudget {
  readonly #limit: number
  readonly #unsent: () => number
  #held = 0

  /**
   * @param limit bytes
   * @param unsent bytes that were sent to workers and that they have not taken
   */
  constructor(limit: number, unsent: () => number) {
    this.#limit = limit
    this.#unsent = unsent
  }

  /** Bytes of the jobs that hold some. */
  get heldBytes(): number {
    return this.#held
  }

  /**
   * Counts bytes for a job that has `own` bytes already. One job alone may have any number: max_request_size
   * bounds them. @throws ServeError QUEUE_FULL
   */
  take(bytes: number, own: number): void {
    const others = this.#held - own + (bytes < LARGE_BYTES ? 0 : this.#unsent())
    if (others > 0 && others + own + bytes > this.#limit)
      throw queueFull(
        `The requests that wait for workers have too many bytes: ${this.#limit} may wait (max_waiting_input_bytes)`,
      )
    this.#held += bytes
  }

  /** A worker has these bytes, or their job has ended. */
  give(bytes: number): void {
    this.#held -= bytes
  }
}

/** A sixteenth of the memory of the machine or of the cgroup, at least 256 MiB. */
export function defaultInputBudget(): number {
  return Math.max(LEAST_DEFAULT_BYTES, Math.floor(memoryBytes() / DEFAULT_SHARE))
}

const CANCELLED = new ServeError('CANCELLED', 'The request was cancelled by an operator')

/**
 * Every open job of the server by request id. Models and workflows add a job before they do anything with it,
 * and remove it at its end. The server chooses the ids, so they are unique.
 */
export class JobIndex {
  readonly #jobs = new PassingMap<string, Job>()
  readonly #budget: InputBudget | undefined

  /** @param budget of the inputs of all open jobs; absent: no limit */
  constructor(budget?: InputBudget) {
    this.#budget = budget
  }

  get size(): number {
    return this.#jobs.size
  }

  /** Every open job, in the order of entry. */
  [Symbol.iterator](): Iterator<Job> {
    return this.#jobs.values()
  }

  /** The open job with this id; undefined if there is none or it has ended. */
  get(requestId: string): Job | undefined {
    return this.#jobs.get(requestId)
  }

  /**
   * Ends a request for an operator: its handler is told to stop, and its client gets the error CANCELLED.
   * @param requestId the `x-request-id` of its response
   * @returns the name of its model or workflow
   * @throws ServeError REQUEST_NOT_FOUND when no open request has this id
   */
  cancel(requestId: string): string {
    const job = this.#jobs.get(requestId)
    if (job === undefined)
      throw new ServeError('REQUEST_NOT_FOUND', `No open request has the id ${requestId.slice(0, 200)}`)
    job.abort(CANCELLED, 'operator')
    return job.request.modelName
  }

  /**
   * @throws ServeError INTERNAL when an open job already has this id, QUEUE_FULL when the inputs of all jobs
   *   have too many bytes; the index is unchanged then
   */
  enter(job: Job): void {
    const { requestId } = job.request
    if (this.#jobs.has(requestId)) throw new ServeError('INTERNAL', `Request ${requestId} is already open`)
    job.hold(inputBytes(job.request), this.#budget)
    this.#jobs.set(requestId, job)
  }

  leave({ request: { requestId } }: Job): void {
    this.#jobs.delete(requestId)
  }
}

/** Milliseconds after which a client may ask again. How long a queue stays full, nobody knows. */
const RETRY_AFTER_MS = 1_000

/** A request more than may wait. */
export function queueFull(message: string): ServeError {
  return new ServeError('QUEUE_FULL', message, { retryAfterMs: RETRY_AFTER_MS })
}
