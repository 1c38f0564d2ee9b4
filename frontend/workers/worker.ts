import { isMachineFault, ServeError } from '../../common/errors.ts'
import { startTimer } from '../../common/timer.ts'
import type { FromWorker } from '../../protocol/messages.ts'
import type { Job } from '../jobs/job.ts'
import { type ModelFailure, newFailure } from '../models/model-errors.ts'
import type { Model } from '../models/model.ts'
import type { WorkerDescription } from '../models/operations.ts'
import type { WorkerExit } from '../models/worker-pool.ts'
import type { BatchOwner, JobRunner, RunWatcher } from '../jobs/scheduler.ts'
import { Backoff, Deferred, Liveness } from './worker-life.ts'
import { type ExitCause, loadExit } from './exit-cause.ts'
import { residentBytes } from './processes.ts'
import { Reports, tellingThrown, withAllMissing } from './reports.ts'
import { Requests } from './requests.ts'
import type { StartGroup } from './runtimes.ts'
import type { WorkerGroup } from './worker-group.ts'
import type { Hardware, WorkerEvents, WorkerState } from './worker-state.ts'

/** Starts in a row that ended without an answer, from which on the worker counts as one that cannot serve. */
const SHORT_LIVED = 3
/** Ids of failed requests in one line of the log. */
const LISTED = 20

/** One worker of a model, through all the starts of its processes: its state, its requests, its restarts. */
export class Worker implements JobRunner {
  readonly id: number
  readonly name: string
  readonly #model: Model
  readonly #startGroup: StartGroup
  readonly #events: WorkerEvents
  readonly #hardware: Hardware
  readonly #backoff: Backoff
  readonly #liveness: Liveness
  readonly #reports: Reports
  #state: WorkerState = 'starting'
  #group: WorkerGroup | undefined
  /** The processes of the last start, which may be ending. */
  #last: WorkerGroup | undefined
  #requests: Requests | undefined
  #starts = 0
  #threads = 0
  /** Whether it has one that can be used, as far as is known. */
  #usesGpu = false
  #startTime = new Date()
  /** The same in performance.now(), which no change of the clock moves. */
  #startedAt = performance.now()
  #lastExit: ExitCause | undefined
  #killReason: string | undefined
  #failure: ModelFailure | undefined
  #restartTimer: NodeJS.Timeout | undefined
  #loaded = new Deferred()

  /** `name` is `W-<id>-<model>_<version>`; `startGroup` starts its processes, each time anew. */
  constructor(
    id: number,
    name: string,
    hardware: Hardware,
    model: Model,
    startGroup: StartGroup,
    events: WorkerEvents,
  ) {
    this.id = id
    this.name = name
    this.#hardware = hardware
    this.#model = model
    this.#startGroup = startGroup
    this.#events = events
    this.#reports = new Reports(events, model)
    this.#backoff = new Backoff(model.settings.maxRetryTimeoutInSec)
    this.#liveness = new Liveness(model.settings.responseTimeout * 1000, {
      idle: () => this.#state === 'ready' && this.#requests?.size === 0,
      ping: (nonce) => this.#group?.sendToFirst({ type: 'ping', nonce }),
      onSilent: () => {
        this.#kill('Killed: it did not answer pings')
      },
    })
    void this.#start()
  }

  get state(): WorkerState {
    return this.#state
  }

  /**
   * Resolves when the handler is loaded in the current start or, while the worker is down, in the next one;
   * rejects when that start fails.
   */
  get loaded(): Promise<void> {
    return this.#loaded.promise
  }

  /** Set from a start that failed to load, or from the last death, until the handler is loaded again. */
  get failure(): ModelFailure | undefined {
    return this.#failure
  }

  /** Number of free slots. */
  get freeSlots(): number {
    if (this.#state !== 'ready' || this.#requests === undefined) return 0
    return this.#model.slots - this.#requests.batches
  }

  /** Bytes of requests that were sent to it and that it has not taken. */
  get unsentBytes(): number {
    return this.#group?.unsentBytes ?? 0
  }

  /** Batches that it runs. */
  get busySlots(): number {
    return this.#requests?.batches ?? 0
  }

  /** Whether no request is at it, begun or not. */
  get isIdle(): boolean {
    return (this.#requests?.size ?? 0) === 0
  }

  /** With several slots, the worker has the next batch anyway. */
  get room(): number {
    return this.#state === 'ready' && this.#model.slots === 1 ? this.#requests!.room : 0
  }

  run(jobs: readonly Job[], watcher?: RunWatcher): void {
    const from = performance.now()
    this.#requests?.run(jobs, watcher, from)
    this.#model.metrics.handed(performance.now() - from)
  }

  runLater(jobs: readonly Job[], owner: BatchOwner): void {
    const from = performance.now()
    this.#requests?.runLater(jobs, owner)
    this.#model.metrics.handed(performance.now() - from)
  }

  sequenceEnded(id: string): void {
    this.#group?.send({ type: 'sequenceEnd', sequence: id })
  }

  /** Lets its requests finish for `graceMs`, then ends it. Returns false if it had to be killed. */
  async stop(graceMs: number): Promise<boolean> {
    clearTimeout(this.#restartTimer)
    this.#liveness.stop()
    const group = this.#group
    this.#setState(group === undefined ? 'stopped' : 'stopping')
    this.#requests?.withdraw()
    // A group that failed before may still be ending, and what it printed is read until then.
    if (group === undefined) await this.#last?.exited()
    const clean = (await group?.stop(graceMs)) ?? true
    this.#requests?.failAll(new ServeError('WORKER_LOST', 'Worker died.'))
    this.#setState('stopped')
    this.#loaded.reject(new ServeError('WORKER_START_FAILED', 'The worker was stopped'))
    return clean
  }

  /** Kills its processes at once. Resolves when they have ended and what they printed is read. */
  async kill(): Promise<void> {
    clearTimeout(this.#restartTimer)
    this.#setState('stopped')
    this.#group?.kill()
    await this.#last?.exited()
  }

  get lastExit(): WorkerExit | undefined {
    return this.#lastExit
  }

  describe(): WorkerDescription {
    const exit = this.#lastExit
    const { devices, device } = this.#hardware
    return {
      id: String(this.id),
      startTime: this.#startTime.toISOString(),
      status: this.#state === 'ready' ? 'READY' : 'UNLOADING',
      memoryUsage: residentBytes(this.#group?.pids ?? []),
      pid: this.#group?.pid ?? -1,
      gpu: this.#usesGpu,
      gpuUsage: 'N/A',
      state: this.#state === 'ready' && this.freeSlots <= 0 ? 'busy' : this.#state,
      inFlight: this.#requests?.running ?? 0,
      deviceIds: devices.length > 0 ? [...devices] : undefined,
      device: this.#usesGpu ? device : 'cpu',
      threads: this.#threads,
      restarts: Math.max(0, this.#starts - 1),
      lastExit: exit && { at: exit.at.toISOString(), reason: exit.reason, stderr: exit.stderr },
    }
  }

  async #start(): Promise<void> {
    if (this.#loaded.settled) this.#loaded = new Deferred()
    this.#starts += 1
    this.#startTime = new Date()
    this.#startedAt = performance.now()
    this.#killReason = undefined
    this.#setState('starting')
    this.#usesGpu = this.#hardware.devices.length > 0
    this.#threads = this.#hardware.threads()
    const start = {
      workerId: this.id,
      serial: `${this.id}-${this.#starts}`,
      devices: this.#hardware.devices,
      threads: this.#threads,
      wanted: () => this.#state === 'starting',
    }
    const made = this.#startGroup(start, {
      onConnected: () => {
        if (this.#state === 'starting') this.#setState('loading')
      },
      onMessage: (rank, message) => this.#receive(rank, message),
      itemsOf: (rank) => this.#requests!.itemsOf(rank),
      onUnusableDevice: (why) => {
        this.#usesGpu = false
        const { device } = this.#hardware
        this.#events.log('warn', `Its GPU (${device}) cannot be used, so it computes on the CPU: ${why}`)
      },
      onBroken: (id, error) => this.#requests?.broken(id, error),
      onOutput: (stream, line, prefix) => this.#reports.printed(stream, line, prefix),
      onDeath: (cause) => this.#died(group, cause),
    })
    const group = (this.#group = this.#last = made instanceof Promise ? await made : made)
    this.#requests = new Requests(this.#model.settings, group, {
      onFree: () => this.#events.onFree(),
      onFailure: (job, error) => this.#reports.requestFailed(job, error),
      forClient: this.#events.tellsThrown === true ? tellingThrown : (error) => error,
      onTimeout: (job) => this.#reports.requestTimedOut(job),
      kill: (why) => this.#kill(`Killed: ${why}`),
      onDiscarded: () => this.#model.metrics.discarded(),
    })
    try {
      await group.load()
    } catch (error) {
      const { handlerPath } = this.#model.prepared
      this.#loadFailed(group, await withAllMissing(ServeError.from(error), handlerPath))
      return
    }
    if (this.#state !== 'loading') return
    this.#model.handlerLoaded(group.methods)
    this.#backoff.ready(performance.now())
    this.#setState('ready')
    this.#setFailure(undefined)
    this.#model.metrics.workerLoaded(this.name, performance.now() - this.#startedAt)
    // A warning, as it ends an error: a log without the lines of level info tells of both or of neither.
    if (this.#starts > 1) this.#events.log('warn', `The worker serves again, after start ${this.#starts}`)
    this.#loaded.resolve()
    if (group.isNative) this.#liveness.start()
    this.#events.onFree()
  }

  #receive(rank: number, message: FromWorker): void {
    switch (message.type) {
      case 'pong':
        this.#liveness.answered(message.nonce)
        break
      case 'log':
        this.#reports.logged(message)
        break
      case 'metric':
        this.#model.metrics.reported(message)
        break
      default:
        this.#requests?.receive(rank, message)
    }
  }

  #loadFailed(group: WorkerGroup, error: ServeError): void {
    this.#loaded.reject(error)
    if (this.#state === 'stopping' || this.#state === 'stopped' || this.#group !== group) return
    const failure = this.#reports.loadFailed(error)
    this.#lastExit = loadExit(error, failure.publicCause)
    this.#group = undefined
    group.kill()
    this.#setFailure(failure)
    void group.exited().then(() => {
      this.#restart(isMachineFault(error))
    })
  }

  /**
   * A process of the group ended by itself. Before the handler is loaded, `load` rejects and handles this.
   */
  #died(group: WorkerGroup, cause: ExitCause): void {
    if (this.#group !== group) return
    this.#lastExit = { ...cause, reason: this.#killReason ?? cause.reason }
    this.#model.metrics.workerLost()
    if (this.#state !== 'ready') return
    this.#loaded = new Deferred()
    this.#liveness.stop()
    this.#group = undefined
    this.#events.log('error', `Worker died: ${this.#lastExit.reason}`)
    const outOfMemory = cause.outOfMemory && this.#killReason === undefined
    const error = new ServeError(outOfMemory ? 'WORKER_KILLED' : 'WORKER_LOST', 'Worker died.')
    this.#setState('waiting')
    this.#events.onLost(error)
    const failed = this.#requests?.failAll(error) ?? []
    if (failed.length > 0)
      this.#events.log('error', `Requests that failed with the worker: ${listed(failed)}`)
    void group.exited().then(() => {
      this.#restart(false)
    })
  }

  #restart(byMachine: boolean): void {
    if (this.#state === 'stopping' || this.#state === 'stopped') return
    const answered = this.#requests?.answered === true
    const pause = this.#backoff.next(performance.now(), { answered, byMachine })
    if (pause === undefined) {
      this.#giveUp()
      return
    }
    if (this.#backoff.idleStarts >= SHORT_LIVED) this.#cannotServe('Ends again and again', 'again and again')
    this.#setState('waiting')
    this.#restartTimer = startTimer(() => {
      if (this.#state === 'waiting') void this.#start()
    }, pause)
  }

  #giveUp(): void {
    this.#setState('failed')
    this.#loaded.reject(this.#exitError)
    this.#cannotServe('Not started again', 'and is not started again')
  }

  /** Says so where the handler was loaded: a failed load is told already. */
  #cannotServe(what: string, publicly: string): void {
    if (this.#failure !== undefined) return
    const error = this.#exitError
    const failure = newFailure(error, `${this.#lastExit?.publicCause ?? 'its worker ended'} ${publicly}`)
    this.#events.log('error', `${what} (id ${failure.id}): ${error.message}`)
    this.#setFailure(failure)
  }

  get #exitError(): ServeError {
    return new ServeError('WORKER_START_FAILED', this.#lastExit?.reason ?? 'The worker died too often')
  }

  #setFailure(failure: ModelFailure | undefined): void {
    if (failure === this.#failure) return
    this.#failure = failure
    this.#events.onFailureChange(failure)
  }

  #kill(reason: string): void {
    this.#killReason ??= reason
    this.#group?.kill()
  }

  #setState(state: WorkerState): void {
    if (state === this.#state) return
    this.#events.log('debug', `State change ${this.#state} -> ${state}`)
    this.#state = state
  }
}

/** The first of them, and how many more there are. */
function listed(ids: readonly string[]): string {
  const more = ids.length - LISTED
  return ids.slice(0, LISTED).join(', ') + (more > 0 ? ` and ${more} more` : '')
}
