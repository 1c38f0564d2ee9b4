import type { Job } from '../jobs/job.ts'
import { openRequest } from './open-request.ts'

/**
 * The open requests of one view as JSON. Each is written once, however many of them each viewer wants:
 * thousands of requests, in as many lengths as there are viewers, would take the server's thread for long.
 */
export class RequestsJson {
  readonly #jobs: readonly Job[]
  readonly #now: number
  /** Items with commas between them. */
  #bytes = Buffer.alloc(0)
  /** Where each item ends. */
  readonly #ends: number[] = []

  /** `now`: a performance.now(). */
  constructor(jobs: readonly Job[], now: number) {
    this.#jobs = jobs
    this.#now = now
  }

  get total(): number {
    return this.#jobs.length
  }

  /** The first items of the list, without its brackets. */
  first(limit: number): Buffer {
    const count = Math.min(limit, this.#jobs.length)
    if (count > this.#ends.length) this.#write(count)
    return this.#bytes.subarray(0, count === 0 ? 0 : this.#ends[count - 1])
  }

  #write(count: number): void {
    const pieces = [this.#bytes]
    let end = this.#bytes.length
    for (const job of this.#jobs.slice(this.#ends.length, count)) {
      const json = JSON.stringify(openRequest(job, this.#now))
      const piece = Buffer.from(end === 0 ? json : `,${json}`)
      pieces.push(piece)
      this.#ends.push((end += piece.length))
    }
    this.#bytes = Buffer.concat(pieces)
  }
}
