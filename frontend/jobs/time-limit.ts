import type { ErrorCode } from '../../common/errors.ts'
import { startTimer } from '../../common/timer.ts'

/** The fields of a job that time limits use; nothing else writes them. */
export interface Limited {
  /** The running limit; undefined: none. */
  limit: TimeLimit | undefined
  /** performance.now() at which the limit expires. */
  limitEnd: number
  limitBefore: Limited | undefined
  limitAfter: Limited | undefined
  /** The limit has expired. */
  expired(limit: TimeLimit): void
}

/**
 * One time limit for many jobs. It has the same length for all of them, so it expires in the order in which
 * it started: one list and one timer, instead of a timer per request.
 */
export class TimeLimit {
  /** Milliseconds; 0: no limit. */
  readonly ms: number
  readonly code: ErrorCode
  /** What did not happen in time; part of the error message. */
  readonly what: string
  /** The setting behind the limit; part of the error message. */
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
  }

  /**
   * The job that the timer was set for may have ended, so it checks the oldest job now. The timer runs on
   * when the list is empty: one for each request would cost more than all the rest here.
   */
  #arm(ms: number): NodeJS.Timeout {
    return startTimer(() => {
      const now = performance.now()
      for (let job = this.#oldest; job !== undefined && job.limitEnd <= now; job = this.#oldest) {
        this.end(job)
        job.expired(this)
      }
      this.#timer = this.#oldest && this.#arm(Math.ceil(this.#oldest.limitEnd - now))
    }, ms).unref()
  }
}
