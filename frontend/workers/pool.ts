import { ServeError } from '../../common/errors.ts'
import type { LogLevel } from '../../protocol/messages.ts'
import type { Job } from '../jobs/job.ts'
import type { ModelFailure } from '../models/model-failure.ts'
import type { Model } from '../models/model.ts'
import type { WorkerDescription } from '../models/operations.ts'
import type { WorkerPool } from '../models/worker-pool.ts'
import type { DeviceLease, Devices } from './devices.ts'
import type { LaunchContext } from './launch.ts'
import { createGroup, type StartGroup } from './runtimes.ts'
import { sandboxHints } from './sandbox/hints.ts'
import type { WorkerEvents, WorkerOutput } from './worker-state.ts'
import { Worker } from './worker.ts'

export interface PoolContext extends LaunchContext {
  /** A number that no other worker of this server has. A rank group uses as many as it has ranks. */
  nextWorkerId(ranks: number): number
  devices: Devices
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
    const gone = [...this.#takeFailed(), ...this.#workers.splice(count).reverse()]
    while (this.#workers.length < count) this.#workers.push(this.#create())
    this.#judge()
    await Promise.all([
      ...this.#workers.map((worker) => worker.loaded),
      ...gone.map((worker) => this.#retire(worker, SCALE_DOWN_GRACE_MS)),
    ])
  }

  async stop(graceMs: number): Promise<void> {
    const leaving = [...this.#workers.splice(0), ...this.#leaving]
    this.#judge()
    const clean = await Promise.all(leaving.map((worker) => this.#retire(worker, graceMs)))
    if (clean.every(Boolean)) return
    throw new ServeError('CLEANUP_TIMEOUT', `Timed out while cleaning resources: ${this.#model.name}`)
  }

  jobs(): Job[] {
    return [...this.#workers, ...this.#leaving].flatMap((worker) => worker.jobs())
  }

  describe(): WorkerDescription[] {
    return this.#workers.map((worker) => worker.describe())
  }

  kill(): void {
    for (const worker of [...this.#workers, ...this.#leaving]) worker.kill()
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
    const source = `W-${id}-${this.#model.name}_${this.#model.version}`
    const startGroup: StartGroup = (start, events) => createGroup(this.#model, start, this.#context, events)
    const { sandbox: support, settings: server } = this.#context
    const hints = sandboxHints(settings.sandbox, support, server.blacklistEnvVars)
    const log: WorkerEvents['log'] = (level, message, output) => {
      this.#context.log(level, source, message, output)
    }
    const hint = (line: string | undefined): void => {
      if (line !== undefined) log('warn', line)
    }
    const worker = new Worker(id, source, lease.ids, this.#model, startGroup, {
      onFree: () => {
        this.#model.queue.hand()
      },
      onLost: (error) => {
        this.#model.queue.workerLost(worker, error)
      },
      onFailureChange: (failure) => {
        this.#judge(failure)
      },
      failed: (during, { message, detail, isKnown }) => {
        this.#context.log('error', source, message, undefined, isKnown ? undefined : detail)
        const text = `${message}\n${detail}`
        hint(during === 'load' ? hints.forLoad(text) : hints.forRequest(text))
      },
      log: (level, message, output) => {
        log(level, message, output)
        if (output !== undefined) hint(hints.forOutput(message))
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
    this.#model.queue.workerLost(worker, new ServeError('WORKER_LOST', 'The worker was scaled away'))
    const clean = await worker.stop(graceMs)
    this.#leaving.delete(worker)
    this.#leases.get(worker)?.release()
    return clean
  }
}
