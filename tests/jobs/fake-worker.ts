import type { Job } from '../../frontend/jobs/job.ts'
import type { JobRunner, RunWatcher, JobHolder } from '../../frontend/jobs/scheduler.ts'

const NOBODY: JobHolder = { abandon: () => undefined, drained: () => undefined }

/** A worker as schedulers see it; the test says when its handler answers. */
export class FakeWorker implements JobRunner {
  readonly name: string
  slots: number
  readonly batches: { jobs: Set<Job>; watcher: RunWatcher | undefined }[] = []
  /** Sequences of which it got jobs, and has not been told the end. Filled by Setup. */
  readonly sequences = new Set<string>()
  onRun: (jobs: readonly Job[]) => void = () => undefined
  onSequenceEnd: (id: string) => void = () => undefined
  onFree: () => void = () => undefined

  constructor(name: string, slots = 1) {
    this.name = name
    this.slots = slots
  }

  get freeSlots(): number {
    return this.slots - this.batches.length
  }

  get running(): Job[] {
    return this.batches.flatMap(({ jobs }) => [...jobs])
  }

  sequenceEnded(id: string): void {
    this.sequences.delete(id)
    this.onSequenceEnd(id)
  }

  run(jobs: readonly Job[], watcher?: RunWatcher): void {
    this.batches.push({ jobs: new Set(jobs), watcher })
    for (const job of jobs) job.started(NOBODY)
    this.onRun(jobs)
  }

  /** An answer; `more`: intermediate. Returns the headers that the client gets. */
  answer(job: Job, more = false, headers: Record<string, string> = {}): Readonly<Record<string, string>> {
    const { watcher } = this.#batchOf(job)
    const told = watcher?.answering(job, headers) ?? headers
    job.respond({ body: Buffer.from('x'), more: more ? true : undefined, status: 200, headers: told })
    if (!more) this.release(job)
    return told
  }

  /** The handler has finished with the job. */
  release(job: Job): void {
    const batch = this.#batchOf(job)
    batch.jobs.delete(job)
    if (batch.jobs.size === 0) this.batches.splice(this.batches.indexOf(batch), 1)
    batch.watcher?.released(job)
    if (batch.jobs.size === 0) this.onFree()
  }

  #batchOf(job: Job): (typeof this.batches)[number] {
    return this.batches.find(({ jobs }) => jobs.has(job))!
  }
}
