import type { Scheduler } from '../jobs/scheduler.ts'
import { ScalingRule, type ScalingSettings } from './scaling-rule.ts'
import type { WorkerPool } from './worker-pool.ts'

/** What scaling needs of a model version. */
export interface ScalableModel {
  readonly minWorkers: number
  readonly maxWorkers: number
  /** Batches that one worker runs at once. */
  readonly slots: number
  readonly queue: Scheduler
  readonly workers: WorkerPool
  /** Number of requests that have not ended. */
  readonly open: number
  /** Number of requests that have. */
  readonly ended: number
}

/** Milliseconds between two looks at a model whose number of workers may have to change. */
const LOOK_MS = 250

/**
 * Lets the workers of one model version follow its load (docs/autoscaling.md). It looks at the model only
 * while there is something to decide: a request waits, or there are more workers than minWorkers.
 */
export class Autoscaler {
  readonly #model: ScalableModel
  readonly #rule: ScalingRule
  readonly #jobsPerSlot: number
  #timer: NodeJS.Timeout | undefined
  #stopped = false
  /** When a request came for which there was no worker; undefined: none waits for the first one. */
  #wokenAt: number | undefined

  /** `jobsPerSlot` is the number of requests that a batch takes out of the queue. */
  constructor(model: ScalableModel, settings: ScalingSettings, jobsPerSlot: number) {
    this.#model = model
    this.#rule = new ScalingRule(settings)
    this.#jobsPerSlot = jobsPerSlot
  }

  /** Whether a request may come while there is no worker: the first one starts one. */
  get wakes(): boolean {
    const { minWorkers, maxWorkers, workers } = this.#model
    return !this.#stopped && minWorkers === 0 && maxWorkers > 0 && workers.failure === undefined
  }

  /** A request waits in the queue. Without a worker, one starts now. */
  waits(): void {
    if (this.#model.workers.wanted === 0) {
      this.#wokenAt ??= performance.now()
      this.#look()
    }
    this.watch()
  }

  /** A worker has loaded the handler. Returns milliseconds since the request that it was started for. */
  loaded(): number | undefined {
    const since = this.#wokenAt
    this.#wokenAt = undefined
    return since === undefined ? undefined : performance.now() - since
  }

  /** The bounds or the workers have changed. */
  watch(): void {
    if (this.#stopped) return
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#look()
      if (this.#mayChange()) this.watch()
    }, LOOK_MS).unref()
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
  }

  #look(): void {
    const { queue, workers, minWorkers, maxWorkers, slots, open, ended } = this.#model
    if (this.#stopped || maxWorkers === 0) return
    workers.endDrained()
    const { jobs: waiting, since } = queue.backlog()
    const now = performance.now()
    const { wanted, ready } = workers
    const next = this.#rule.next({
      ...{ now, minWorkers, maxWorkers, wanted, ready, ...workers.load() },
      ...{ jobsPerWorker: slots * this.#jobsPerSlot, waiting, waited: since === undefined ? 0 : now - since },
      ...{ idle: open === 0 && (queue.openSequences ?? 0) === 0, ended },
    })
    if (next !== wanted) workers.resize(next)
  }

  #mayChange(): boolean {
    const { queue, workers, minWorkers } = this.#model
    return workers.wanted > minWorkers || queue.backlog().jobs > 0 || workers.load().draining > 0
  }
}
