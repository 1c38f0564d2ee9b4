import type { Job } from '../../frontend/jobs/job.ts'
import type { BatchOwner, JobRunner, RunWatcher, JobHolder } from '../../frontend/jobs/scheduler.ts'

const NOBODY: JobHolder = { abandon: () => undefined, drained: () => undefined }

/** A worker as schedulers see it; the test says when its handler answers. */
export class FakeWorker implements JobRunner {
  readonly name: string
  slots: number
  readonly batches: { jobs: Set<Job>; watcher: RunWatcher | undefined }[] = []
  /** Batches that wait at it. */
  readonly waiting: { jobs: readonly Job[]; owner: BatchOwner }[] = []
  /** Sequences of which it got jobs, and has not been told the end. Filled by Setup. */
  readonly sequences = new Set<string>()
  /** How many batches may wait at it while it is busy. */
  mayWait = 0
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

  get room(): number {
    return this.freeSlots > 0 ? 0 : this.mayWait - this.waiting.length
  }

  runLater(jobs: readonly Job[], owner: BatchOwner): void {
    this.waiting.push({ jobs, owner })
  }

  sequenceEnded(id: string): void {
    this.sequences.delete(id)
    this.onSequenceEnd(id)
  }

  /** Gives back what waits at it. */
  giveBack(): void {
    const batches = this.waiting.splice(0)
    batches[0]?.owner.returned(batches.flatMap(({ jobs }) => jobs))
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
    if (batch.jobs.size === 0) {
      this.batches.splice(this.batches.indexOf(batch), 1)
      this.#beginNext()
    }
    batch.watcher?.released(job)
    if (batch.jobs.size === 0) this.onFree()
  }

  #beginNext(): void {
    const next = this.waiting.shift()
    if (next === undefined) return
    next.owner.began(next.jobs)
    this.run(next.jobs)
  }

  #batchOf(job: Job): (typeof this.batches)[number] {
    return this.batches.find(({ jobs }) => jobs.has(job))!
  }
}
