import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import fc from 'fast-check'
import type { ServeError } from '../../common/errors.ts'
import type { Job } from '../../frontend/jobs/job.ts'
import type { FakeWorker } from './fake-worker.ts'
import { failures, HEADERS, newJob, sequenceOf, Setup } from './sequence-setup.ts'

type Action =
  | { do: 'add'; id: string | undefined; first: boolean; last: boolean }
  | { do: 'finish' | 'begin' | 'cancel' | 'crash' | 'wait'; n: number }

const actions: fc.Arbitrary<Action[]> = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        do: fc.constant('add' as const),
        id: fc.option(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'), { nil: undefined }),
        first: fc.nat(9).map((n) => n === 0),
        last: fc.nat(9).map((n) => n === 0),
      }),
    },
    { weight: 6, arbitrary: fc.record({ do: fc.constantFrom('finish', 'begin'), n: fc.nat(7) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('cancel', 'crash'), n: fc.nat(40) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('wait' as const), n: fc.nat(1500) }) },
  ),
  { maxLength: 120 },
)

interface Mode {
  workers: number
  batchSize: number
  overlap: boolean
}

const modes: fc.Arbitrary<Mode> = fc.record({
  workers: fc.integer({ min: 1, max: 3 }),
  batchSize: fc.integer({ min: 1, max: 3 }),
  overlap: fc.boolean(),
})

const MAX_SEQUENCES = 5

/** Plays actions and checks the invariants after each. */
class Play {
  readonly setup: Setup
  readonly accepted: Job[] = []
  readonly cancelled = new Set<Job>()
  /** Jobs that have begun to answer, where the next may follow then. */
  readonly #answered = new Set<Job>()
  /** Sequences that a dead worker may have had, of which nobody has been told yet. */
  readonly #maybeLost = new Set<string>()
  readonly #mode: Mode

  constructor(mode: Mode) {
    const { workers, overlap } = mode
    this.#mode = { ...mode, batchSize: overlap ? 1 : mode.batchSize }
    const options = { batchSize: this.#mode.batchSize, overlap, maxSequences: MAX_SEQUENCES }
    this.setup = new Setup(options, workers, this.#slots)
    for (const worker of this.setup.workers)
      worker.onSequenceEnd = (id) => expect(worker.running.map(sequenceOf)).not.toContain(id)
  }

  get #slots(): number {
    return this.#mode.overlap ? 4 : 2
  }

  get #running(): Job[] {
    return this.setup.workers.flatMap((worker) => worker.running)
  }

  play(action: Action): void {
    if (action.do === 'add') this.#add(newJob(action.id, marksOf(action)))
    else if (action.do === 'wait') jest.advanceTimersByTime(action.n)
    else if (action.do === 'crash') this.#crash(this.setup.workers[action.n % this.#mode.workers]!)
    else if (action.do === 'cancel') this.#cancel(this.accepted[action.n])
    else this.#answer(this.#running.at(action.n % Math.max(1, this.#running.length)), action.do === 'begin')
    this.#check()
  }

  /** Answers all that is left. */
  finish(): void {
    while (this.#running.length > 0 || this.setup.queue.pending > 0) {
      for (const job of this.#running) this.#answer(job, false)
      jest.advanceTimersByTime(100)
      this.#check()
    }
  }

  #add(job: Job): void {
    try {
      this.setup.queue.add(job)
      this.accepted.push(job)
    } catch (error) {
      if ((error as ServeError).code === 'NO_WORKER')
        expect(this.#maybeLost.delete(sequenceOf(job))).toBe(true)
      else expect(error).toMatchObject({ code: 'QUEUE_FULL' })
    }
  }

  #crash(worker: FakeWorker): void {
    for (const job of this.accepted) this.#maybeLost.add(sequenceOf(job))
    this.setup.crash(worker)
  }

  #cancel(job: Job | undefined): void {
    if (job === undefined || job.ended) return
    this.cancelled.add(job)
    job.cancel()
  }

  #answer(job: Job | undefined, more: boolean): void {
    if (job === undefined) return
    if (this.#mode.overlap) this.#answered.add(job)
    this.setup.workerOf(job)?.answer(job, more)
  }

  #check(): void {
    expect(this.setup.queue.openSequences).toBeLessThanOrEqual(MAX_SEQUENCES)
    const homes = new Map<string, FakeWorker>()
    for (const worker of this.setup.workers) {
      expect(worker.batches.length).toBeLessThanOrEqual(this.#slots)
      for (const { jobs } of worker.batches) {
        expect(jobs.size).toBeLessThanOrEqual(this.#mode.batchSize)
        expect(new Set([...jobs].map(sequenceOf)).size).toBe(jobs.size)
      }
      for (const id of worker.sequences) expect(this.setup.queue.hasSequence(id)).toBe(true)
      const ahead = worker.running.filter((job) => !this.#answered.has(job)).map(sequenceOf)
      expect(new Set(ahead).size).toBe(ahead.length)
      for (const id of worker.running.map(sequenceOf)) {
        expect(homes.get(id) ?? worker).toBe(worker)
        homes.set(id, worker)
      }
    }
  }
}

function marksOf({ first, last }: Action & { do: 'add' }): Record<string, string> {
  return { ...(first && { [HEADERS.start]: 'true' }), ...(last && { [HEADERS.end]: 'true' }) }
}

beforeEach(() => {
  jest.useFakeTimers()
  failures.clear()
})
afterEach(() => {
  jest.useRealTimers()
})

test('whatever happens: a sequence keeps its order and has one worker, which is told of its end, and every job ends and is given out at most once', () => {
  fc.assert(
    fc.property(actions, modes, (all, mode) => {
      const play = new Play(mode)
      const { setup, accepted, cancelled } = play
      for (const action of all) play.play(action)
      play.finish()
      const { started } = setup
      expect(new Set(started).size).toBe(started.length)
      for (const job of accepted) {
        expect(job.ended).toBe(true)
        expect(started.includes(job) || cancelled.has(job) || failures.has(job)).toBe(true)
      }
      for (const id of new Set(started.map(sequenceOf))) {
        const own = (jobs: Job[]) => jobs.filter((job) => sequenceOf(job) === id)
        expect(own(started)).toEqual(own(accepted).filter((job) => started.includes(job)))
      }
      jest.advanceTimersByTime(3000)
      expect(setup.queue.openSequences).toBe(0)
      expect(setup.workers.flatMap(({ sequences }) => [...sequences])).toEqual([])
      setup.queue.close()
      expect(jest.getTimerCount()).toBe(0)
    }),
    { numRuns: 300 },
  )
})
