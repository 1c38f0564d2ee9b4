import { ServeError } from '../../common/errors.ts'
import { type InputBudget, inputBytes } from './input-budget.ts'
import type { Job } from './job.ts'

const BUCKETS = 1024

/** The field of a job that the index uses; nothing else writes it. */
export interface Indexed {
  nextInIndex: Job | undefined
}

/**
 * Every open job of the server by request id. Models and workflows add a job before they do anything with it,
 * and remove it at its end. The server chooses the ids, so they are unique. A Map would keep ended jobs
 * (common/number-map.ts).
 */
export class JobIndex {
  /** The last job of each bucket; the others follow by `nextInIndex`. */
  readonly #buckets = new Array<Job | undefined>(BUCKETS).fill(undefined)
  readonly #budget: InputBudget | undefined
  #size = 0

  /** @param budget of the inputs of all open jobs; absent: no limit */
  constructor(budget?: InputBudget) {
    this.#budget = budget
  }

  get size(): number {
    return this.#size
  }

  /** Every open job, in no order. */
  *[Symbol.iterator](): Generator<Job> {
    for (const first of this.#buckets)
      for (let job = first; job !== undefined; job = job.nextInIndex) yield job
  }

  /** The open job with this id; undefined if there is none or it has ended. */
  get(requestId: string): Job | undefined {
    let job = this.#buckets[bucketOf(requestId)]
    while (job !== undefined && job.request.requestId !== requestId) job = job.nextInIndex
    return job
  }

  /**
   * @throws ServeError INTERNAL when an open job already has this id, QUEUE_FULL when the inputs of all jobs
   *   have too many bytes; the index is unchanged then
   */
  enter(job: Job): void {
    const { requestId } = job.request
    if (this.get(requestId) !== undefined)
      throw new ServeError('INTERNAL', `Request ${requestId} is already open`)
    this.#budget?.hold(job, inputBytes(job.request))
    const bucket = bucketOf(requestId)
    job.nextInIndex = this.#buckets[bucket]
    this.#buckets[bucket] = job
    this.#size += 1
  }

  leave(job: Job): void {
    const bucket = bucketOf(job.request.requestId)
    let before: Job | undefined
    let at = this.#buckets[bucket]
    while (at !== undefined && at !== job) {
      before = at
      at = at.nextInIndex
    }
    if (at === undefined) return
    job.budget?.release(job)
    job.budget = undefined
    if (before === undefined) this.#buckets[bucket] = job.nextInIndex
    else before.nextInIndex = job.nextInIndex
    job.nextInIndex = undefined
    this.#size -= 1
  }
}

/** Request ids are random from their first character on. */
function bucketOf(id: string): number {
  return ((id.charCodeAt(0) * 31 + id.charCodeAt(1)) * 31 + id.charCodeAt(2)) & (BUCKETS - 1)
}
