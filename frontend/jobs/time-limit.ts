import type { ErrorCode } from '../../common/errors.ts'
import { PassingMap } from '../../common/maps.ts'
import { startTimer } from '../../common/timer.ts'

export interface Limited {
  /** The limit has expired. */
  expired(limit: TimeLimit): void
}

/**
 * One time limit for many jobs, of the same length for all of them: one table and one timer, instead of a
 * timer per request.
 */
export class TimeLimit {
  /** Milliseconds; 0: no limit. */
  readonly ms: number
  readonly code: ErrorCode
  /** What did not happen in time; part of the error message. */
  readonly what: string
  /** The setting behind the limit; part of the error message. */
  readonly key: string
  /** When it expires for each, by performance.now(). */
  readonly #ends = new PassingMap<Limited, number>()
  #timer: NodeJS.Timeout | undefined
  /** When the timer fires, by performance.now(). */
  #firesAt = Infinity

  constructor(ms: number, code: ErrorCode, what: string, key: string) {
    this.ms = ms
    this.code = code
    this.what = what
    this.key = key
  }

  /** Begins it, or begins it anew. @param since performance.now() from which the time counts */
  begin(job: Limited, since = performance.now()): void {
    if (this.ms === 0) return
    const end = since + this.ms
    this.#ends.delete(job)
    this.#ends.set(job, end)
    if (end < this.#firesAt) this.#fireAt(end)
  }

  end(job: Limited): void {
    this.#ends.delete(job)
  }

  /** The timer runs on when the table is empty: one for each request would cost more than the rest here. */
  #fireAt(time: number): void {
    clearTimeout(this.#timer)
    this.#firesAt = time
    this.#timer = startTimer(() => this.#fire(), Math.ceil(time - performance.now())).unref()
  }

  /** A long table is read at most once in a millisecond for each thousand jobs. */
  #fire(): void {
    const now = performance.now()
    const due: Limited[] = []
    let next = Infinity
    for (const [job, end] of this.#ends) {
      if (end <= now) due.push(job)
      else if (end < next) next = end
    }
    this.#firesAt = Infinity
    for (const job of due) {
      // One that expires may end another, or begin its limit anew.
      if ((this.#ends.get(job) ?? Infinity) > now) continue
      this.#ends.delete(job)
      job.expired(this)
    }
    if (next < this.#firesAt) this.#fireAt(Math.max(next, now + (this.#ends.size >> 10)))
  }
}

/** The time limits of one job, each in milliseconds; 0 disables a limit. */
export interface JobTimeouts {
  queue: number
  firstResponse: number
  gap: number
  total: number
  /** The setting behind `total`, for the error message. Default `requestTimeout`. */
  totalKey?: string
}

/** The time limits of all jobs of one model. */
export interface JobLimits {
  readonly queue: TimeLimit
  readonly firstResponse: TimeLimit
  readonly gap: TimeLimit
  readonly total: TimeLimit
}

export function jobLimits(timeouts: JobTimeouts): JobLimits {
  const { queue, firstResponse, gap, total, totalKey = 'requestTimeout' } = timeouts
  return {
    queue: new TimeLimit(queue, 'QUEUE_TIMEOUT', 'waited too long for a worker', 'queueTimeout'),
    firstResponse: new TimeLimit(firstResponse, 'RESPONSE_TIMEOUT', 'no response', 'firstResponseTimeout'),
    gap: new TimeLimit(gap, 'RESPONSE_TIMEOUT', 'no further response', 'gapTimeout'),
    total: new TimeLimit(total, 'REQUEST_TIMEOUT', 'the whole request took too long', totalKey),
  }
}
