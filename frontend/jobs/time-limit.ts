import type { ErrorCode } from '../../common/errors.ts'

/** What a time limit needs of a job; its own fields there are nobody else's business. */
export interface Limited {
  /** The limit that runs; undefined: none. */
  limit: TimeLimit | undefined
  /** performance.now() at which it runs out. */
  limitEnd: number
  limitBefore: Limited | undefined
  limitAfter: Limited | undefined
  /** Time is up. */
  expired(limit: TimeLimit): void
}

/**
 * One limit on the time of many jobs. It is equally long for all, so it runs out for them in the order in which it began: a chain
 * with one timer, instead of a timer for every request.
 */
export class TimeLimit {
  /** Milliseconds; 0: no limit. */
  readonly ms: number
  readonly code: ErrorCode
  /** What did not happen in time, for the client. */
  readonly what: string
  /** The setting that it comes from. */
  readonly key: string
  #oldest: Limited | undefined
  #newest: Limited | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(ms: number, code: ErrorCode, what: string, key: string) {
    this.ms = ms
    this.code = code
    this.what = what
    this.key = key
  }

  begin(job: Limited): void {
    if (this.ms === 0) return
    job.limit = this
    job.limitEnd = performance.now() + this.ms
    job.limitBefore = this.#newest
    if (this.#newest === undefined) this.#oldest = job
    else this.#newest.limitAfter = job
    this.#newest = job
    this.#timer ??= this.#arm(this.ms)
  }

  end(job: Limited): void {
    if (job.limit !== this) return
    const { limitBefore: before, limitAfter: after } = job
    if (before === undefined) this.#oldest = after
    else before.limitAfter = after
    if (after === undefined) this.#newest = before
    else after.limitBefore = before
    job.limit = job.limitBefore = job.limitAfter = undefined
    if (this.#oldest !== undefined) return
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  /** The timer may outlive the job that it was set for: it looks who is the oldest now. */
  #arm(ms: number): NodeJS.Timeout {
    return setTimeout(() => {
      const now = performance.now()
      for (let job = this.#oldest; job !== undefined && job.limitEnd <= now; job = this.#oldest) {
        this.end(job)
        job.expired(this)
      }
      clearTimeout(this.#timer)
      this.#timer = this.#oldest && this.#arm(Math.ceil(this.#oldest.limitEnd - now))
    }, ms)
  }
}
