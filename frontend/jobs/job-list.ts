import type { Job } from './job.ts'

/** The fields of a job that lists use; nothing else writes them. */
export interface Listed {
  /** The list that the job is in; it can be in one. */
  list: JobList | undefined
  listBefore: Job | undefined
  listAfter: Job | undefined
}

/** Jobs in the order in which they were added. A Set would keep the ones that left (common/number-map.ts). */
export class JobList implements Iterable<Job> {
  #first: Job | undefined
  #last: Job | undefined
  #size = 0

  get size(): number {
    return this.#size
  }

  get first(): Job | undefined {
    return this.#first
  }

  has(job: Job): boolean {
    return job.list === this
  }

  /** Adds a job that is in no list. */
  add(job: Job): void {
    job.list = this
    job.listBefore = this.#last
    if (this.#last === undefined) this.#first = job
    else this.#last.listAfter = job
    this.#last = job
    this.#size += 1
  }

  /** Adds a job that is in no list, before all others. */
  addFirst(job: Job): void {
    job.list = this
    job.listAfter = this.#first
    if (this.#first === undefined) this.#last = job
    else this.#first.listBefore = job
    this.#first = job
    this.#size += 1
  }

  delete(job: Job): void {
    if (job.list !== this) return
    const { listBefore: before, listAfter: after } = job
    if (before === undefined) this.#first = after
    else before.listAfter = after
    if (after === undefined) this.#last = before
    else after.listBefore = before
    job.list = job.listBefore = job.listAfter = undefined
    this.#size -= 1
  }

  /** Jobs may leave while others are visited. */
  *[Symbol.iterator](): Generator<Job, void> {
    for (let job = this.#first; job !== undefined;) {
      const next: Job | undefined = job.listAfter
      yield job
      job = next
    }
  }
}
