import { ServeError } from '../../common/errors.ts'
import type { LogLevel } from '../../protocol/messages.ts'
import type { ModelFailure } from '../models/model-errors.ts'
import type { Model } from '../models/model.ts'
import type { WorkerDescription } from '../models/operations.ts'
import type { PoolLoad, WorkerExit, WorkerPool } from '../models/worker-pool.ts'
import type { DeviceLease, Devices } from './gpus.ts'
import type { LaunchContext } from './launch.ts'
import { createGroup, type StartGroup } from './runtimes.ts'
import { threadsOf } from './worker-env.ts'
import type { WorkerOutput } from './worker-state.ts'
import { Worker } from './worker.ts'

export interface PoolContext extends LaunchContext {
  /** A number that no other worker of this server has. A rank group uses as many as it has ranks. */
  nextWorkerId(ranks: number): number
  devices: Devices
  /** See StartOptions. */
  tellsThrown?: boolean
  /** All models of the server, which share its cores. */
  models(): readonly Model[]
  /**
   * `source` is `W-<id>-<model>_<version>`, as in TorchServe's logs. For output of the worker or its handler
   * the name of the output follows. The lines of `detail` follow the message.
   */
  log(
    level: LogLevel,
    source: string,
    message: string,
    output: WorkerOutput | undefined,
    detail?: string,
  ): void
}

/** Milliseconds that a worker has to finish its requests when it is scaled away. */
const SCALE_DOWN_GRACE_MS = 120_000

/** Keeps the configured number of workers of one model, and dispatches to them. */
export class Pool implements WorkerPool {
  readonly #model: Model
  readonly #context: PoolContext
  readonly #workers: Worker[] = []
  /** They take no new requests: the queue does not know them, but sequences stay bound to them. */
  readonly #draining: Worker[] = []
  readonly #leaving = new Set<Worker>()
  readonly #leases = new WeakMap<Worker, DeviceLease>()
  #failure: ModelFailure | undefined

  constructor(model: Model, context: PoolContext) {
    this.#model = model
    this.#context = context
    model.queue.serve(this.#workers)
  }

  get wanted(): number {
    return this.#workers.length
  }

  get ready(): number {
    return this.#workers.filter((worker) => worker.state === 'ready').length
  }

  get healthy(): number {
    return this.#workers.filter((worker) => worker.state !== 'failed').length
  }

  get failure(): ModelFailure | undefined {
    return this.#failure
  }

  async scale(count: number): Promise<void> {
    const gone = this.#takeFailed()
    while (this.#workers.length > count) gone.push(...this.#workers.splice(this.#leastNeeded(), 1))
    if (count === 0) gone.push(...this.#draining.splice(0))
    this.#grow(count)
    await Promise.all([
      ...this.#workers.map((worker) => worker.loaded),
      ...gone.map((worker) => this.#retire(worker, SCALE_DOWN_GRACE_MS)),
    ])
  }

  resize(count: number): void {
    const before = this.#workers.length
    if (count === before) return
    while (this.#workers.length > count) {
      const [worker] = this.#workers.splice(this.#leastNeeded(), 1)
      this.#draining.push(worker!)
    }
    this.#grow(count)
    this.endDrained()
    this.#context.log('info', this.#name, `Scaled from ${before} to ${count} workers`, undefined)
  }

  endDrained(): void {
    const { queue } = this.#model
    for (const worker of [...this.#draining]) {
      if (worker.state === 'ready' && (!worker.isIdle || queue.isBound(worker))) continue
      this.#draining.splice(this.#draining.indexOf(worker), 1)
      void this.#retire(worker, SCALE_DOWN_GRACE_MS)
    }
  }

  load(): PoolLoad {
    const ready = this.#workers.filter((worker) => worker.state === 'ready')
    const failing = this.#workers.filter((worker) => worker.failure !== undefined).length
    return {
      starting: this.#workers.length - ready.length - failing,
      failing: failing > 0,
      draining: this.#draining.length,
      leaving: this.#leaving.size,
      slots: ready.length * this.#model.slots,
      busy: ready.reduce((count, worker) => count + worker.busySlots, 0),
    }
  }

  get unsentBytes(): number {
    return this.#all().reduce((bytes, worker) => bytes + worker.unsentBytes, 0)
  }

  async stop(graceMs: number): Promise<void> {
    const leaving = [...this.#workers.splice(0), ...this.#draining.splice(0), ...this.#leaving]
    this.#judge()
    const clean = await Promise.all(leaving.map((worker) => this.#retire(worker, graceMs)))
    if (clean.every(Boolean)) return
    throw new ServeError('CLEANUP_TIMEOUT', `Timed out while cleaning resources: ${this.#model.name}`)
  }

  get lastExit(): WorkerExit | undefined {
    const exits = [...this.#workers, ...this.#draining].flatMap(({ lastExit }) => lastExit ?? [])
    return exits.sort((a, b) => a.at.getTime() - b.at.getTime()).at(-1)
  }

  describe(): WorkerDescription[] {
    const draining = this.#draining.map((worker) => worker.describe())
    return [
      ...this.#workers.map((worker) => worker.describe()),
      ...draining.map((each) => ({ ...each, status: 'UNLOADING' as const, state: 'draining' })),
    ]
  }

  async kill(): Promise<void> {
    await Promise.all(this.#all().map((worker) => worker.kill()))
  }

  #all(): Worker[] {
    return [...this.#workers, ...this.#draining, ...this.#leaving]
  }

  /** A draining worker comes back before another one starts. */
  #grow(count: number): void {
    const back = this.#draining.splice(0, count - this.#workers.length)
    this.#workers.push(...back)
    while (this.#workers.length < count) this.#workers.push(this.#create())
    this.#judge()
    if (back.length > 0) this.#model.queue.hand()
  }

  /**
   * Index of the worker whose end costs least: one that does not serve, then one without sequences, then the
   * one with the fewest running batches, then the newest.
   */
  #leastNeeded(): number {
    const { queue } = this.#model
    const costs = this.#workers.map((worker) =>
      worker.state === 'ready' ? (queue.isBound(worker) ? 1e6 : 1) + worker.busySlots : 0,
    )
    return costs.lastIndexOf(Math.min(...costs))
  }

  get #name(): string {
    return `${this.#model.name}_${this.#model.version}`
  }

  /** Workers that have given up are replaced by new ones. */
  #takeFailed(): Worker[] {
    const failed = this.#workers.filter((worker) => worker.state === 'failed')
    for (const worker of failed) this.#workers.splice(this.#workers.indexOf(worker), 1)
    return failed
  }

  #create(): Worker {
    const { settings } = this.#model
    const id = this.#context.nextWorkerId(settings.parallelLevel)
    const lease = this.#context.devices.assign(settings)
    const source = `W-${id}-${this.#name}`
    const startGroup: StartGroup = (start, events) => createGroup(this.#model, start, this.#context, events)
    const hardware = {
      devices: lease.ids,
      device: lease.ids.length === 0 ? 'cpu' : `${this.#context.gpus.vendor!.device}:${lease.ids[0]}`,
      threads: () => threadsOf(this.#model, this.#context.models()),
    }
    const worker = new Worker(id, source, hardware, this.#model, startGroup, {
      tellsThrown: this.#context.tellsThrown === true,
      onFree: () => {
        this.#model.queue.hand()
      },
      onLost: (error) => {
        this.#model.queue.workerLost?.(worker, error)
      },
      onFailureChange: (failure) => {
        this.#judge(failure)
      },
      failed: ({ message, detail, isKnown }) => {
        this.#context.log('error', source, message, undefined, isKnown ? undefined : detail)
      },
      log: (level, message, output) => {
        this.#context.log(level, source, message, output)
      },
    })
    this.#leases.set(worker, lease)
    return worker
  }

  /**
   * The model has failed while all of its workers have. @param latest the failure to tell of; default: that
   * of the newest worker
   */
  #judge(latest = this.#workers.at(-1)?.failure): void {
    const failed = this.#workers.length > 0 && this.#workers.every(({ failure }) => failure !== undefined)
    this.#failure = failed ? latest : undefined
    if (this.#failure !== undefined) this.#model.failWaiting(this.#failure)
  }

  async #retire(worker: Worker, graceMs: number): Promise<boolean> {
    this.#leaving.add(worker)
    this.#model.queue.workerLost?.(worker, new ServeError('WORKER_LOST', 'The worker was scaled away'))
    const clean = await worker.stop(graceMs)
    this.#leaving.delete(worker)
    this.#leases.get(worker)?.release()
    this.#model.metrics.workerGone(worker.name)
    return clean
  }
}
