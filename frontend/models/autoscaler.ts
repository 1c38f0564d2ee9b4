import type { Scheduler } from '../jobs/scheduler.ts'
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

/** When a model gets more workers, and when fewer (docs/autoscaling.md). */
export interface ScalingSettings {
  /** Milliseconds that a request may wait for a slot before the model gets more workers. */
  readonly targetQueueTime: number
  /** Milliseconds between two additions. */
  readonly scaleUpInterval: number
  /** Milliseconds for which fewer workers must have been enough before some end. */
  readonly scaleDownAfter: number
  /** Milliseconds without a request after which the last worker ends, where minWorkers is 0. */
  readonly scaleToZeroAfter: number
}

/** What a decision depends on. */
export interface ScalingState {
  /** performance.now() */
  readonly now: number
  readonly minWorkers: number
  readonly maxWorkers: number
  /** Workers that the model has, those that are starting included. */
  readonly wanted: number
  /** Those of them that serve. */
  readonly ready: number
  /** Those of them that start, and of which none has failed to. */
  readonly starting: number
  /** Whether one of them has failed, and not served since. */
  readonly failing: boolean
  /** Other workers whose processes are ending. */
  readonly leaving: number
  /** Slots of the ready workers. */
  readonly slots: number
  /** How many of them are in use. */
  readonly busy: number
  /** Requests that one worker takes at once. */
  readonly jobsPerWorker: number
  /** Queued requests that any worker could take. */
  readonly waiting: number
  /** Milliseconds that the oldest of them has waited; 0: there is none. */
  readonly waited: number
  /** Whether no request is open, and no worker keeps the state of a sequence. */
  readonly idle: boolean
  /** Requests that have ended since the model came, to notice those that came and went between two looks. */
  readonly ended: number
}

/**
 * Decides how many workers a model should have. Pure but for what it remembers of earlier looks, so that a
 * test can play any day in a moment.
 */
export class ScalingRule {
  readonly #settings: ScalingSettings
  #addedAt = -Infinity
  /** Since when fewer workers would have been enough; undefined: they are not. */
  #lowSince: number | undefined
  /** The most workers that were needed since then. */
  #peak = 0
  #idleSince: number | undefined
  #ended = 0

  constructor(settings: ScalingSettings) {
    this.#settings = settings
  }

  /** The number of workers to have from now on. */
  next(state: ScalingState): number {
    const { now, wanted, minWorkers, maxWorkers, leaving } = state
    const isIdle = this.#hasBeenIdle(state)
    const isLow = this.#hasBeenLow(state)
    // What ends still has its memory and its GPU.
    const most = Math.max(wanted, maxWorkers - leaving)
    if (wanted === 0) return Math.min(state.waiting > 0 ? 1 : 0, most)
    const more = Math.min(wanted + this.#lacking(state), most)
    if (more > wanted) {
      this.#addedAt = now
      return more
    }
    // A model that cannot be loaded is not hidden by ending what tells of it.
    if (isIdle && minWorkers === 0 && !state.failing) return 0
    if (!isLow) return wanted
    this.#lowSince = undefined
    return Math.max(this.#peak, Math.ceil(wanted / 2), minWorkers, 1)
  }

  /** How many workers to add: as many as the queue would fill, and at most twice as many as now. */
  #lacking(state: ScalingState): number {
    const { targetQueueTime, scaleUpInterval } = this.#settings
    const { now, wanted, ready, starting, failing, slots, busy, waiting, waited, jobsPerWorker } = state
    // Until one serves, nothing says that others would.
    if (failing || ready === 0 || now - this.#addedAt < scaleUpInterval) return 0
    // With a slot free, what waits is a batch that fills.
    if (waited <= targetQueueTime || busy < slots) return 0
    const forQueue = Math.ceil(waiting / jobsPerWorker) - starting
    return Math.max(0, Math.min(wanted, forQueue))
  }

  #hasBeenLow(state: ScalingState): boolean {
    const needed = neededBy(state)
    if (state.starting > 0 || needed >= state.wanted) {
      this.#lowSince = undefined
      return false
    }
    if (this.#lowSince === undefined) {
      this.#lowSince = state.now
      this.#peak = 0
    }
    this.#peak = Math.max(this.#peak, needed)
    return state.now - this.#lowSince >= this.#settings.scaleDownAfter
  }

  #hasBeenIdle({ now, idle, ended, starting }: ScalingState): boolean {
    const quiet = idle && starting === 0 && ended === this.#ended
    this.#ended = ended
    this.#idleSince = quiet ? (this.#idleSince ?? now) : undefined
    return quiet && now - this.#idleSince! >= this.#settings.scaleToZeroAfter
  }
}

/** Workers that the current load needs: all of them while a request waits for a slot. */
function neededBy({ wanted, minWorkers, slots, ready, busy, waiting }: ScalingState): number {
  if (waiting > 0 && busy >= slots) return wanted
  const slotsPerWorker = ready === 0 ? 1 : slots / ready
  return Math.max(Math.ceil(busy / slotsPerWorker), minWorkers, 1)
}
