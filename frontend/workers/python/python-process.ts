import { ServeError } from '../../../common/errors.ts'
import type { ExitCause } from '../exit-cause.ts'
import { killSession } from '../kill-session.ts'
import { orphanGuard } from '../orphan-guard.ts'
import { type CommandLine, type ProcessEvents, WorkerProcess } from '../worker-process.ts'
import { startError } from './load-error.ts'
import { Tracebacks } from './tracebacks.ts'

/**
 * A rank prints these lines when it listens (model_service_worker.py); after the second one it accepts a
 * connection.
 */
const PID = /^(?:INFO > )?\[PID\](\d+)$/
const STARTED = 'Torch worker started.'
/** Python may take seconds to exit once PyTorch is loaded. */
const EXIT_CODE_LAG_MS = 250
/** Milliseconds that torchrun has to end ranks whose pid is not known yet. */
const TORCHRUN_LAG_MS = 2000

/**
 * The process that was started for a TorchServe worker: its only rank, or torchrun with one process per rank.
 */
export class PythonProcess {
  readonly #process: WorkerProcess
  readonly #ranks: number
  readonly #pids: number[] = []
  /** Ranks of torchrun that nobody has ended and no keeper will end. */
  readonly #living = new Set<number>()
  #startedRanks = 0
  /** Undefined: the handlers are loaded. */
  #tracebacks: Tracebacks | undefined = new Tracebacks()
  #resolveStarted!: () => void
  #rejectStarted!: (error: ServeError) => void
  /** Resolves when every rank listens; rejects when the process exits before. */
  readonly started: Promise<void>

  /** @param ranks 0: the process is the worker; else the number of ranks that torchrun starts */
  constructor(commandLine: CommandLine, ranks: number, events: ProcessEvents) {
    this.#ranks = ranks
    this.started = new Promise((resolve, reject) => {
      this.#resolveStarted = resolve
      this.#rejectStarted = reject
    })
    this.started.catch(() => undefined)
    const onLine: ProcessEvents['onLine'] = (stream, line) => {
      if (this.#startedRanks < Math.max(1, ranks)) this.#look(line)
      this.#tracebacks?.read(line)
      events.onLine(stream, line)
    }
    const onExit = (cause: ExitCause): void => {
      this.#endRanks()
      this.#rejectStarted(startError(cause, this.raised))
      events.onExit(cause)
    }
    // TorchServe's worker logs to stdout, errors included.
    this.#process = new WorkerProcess(commandLine, { onLine, onExit }, ['stdout', 'stderr'])
  }

  /** The pid that the first rank printed; until then the pid of the process. */
  get pid(): number {
    return this.#pids[0] ?? this.#process.pid
  }

  get pids(): number[] {
    return this.#pids.length > 0 ? [...this.#pids] : [this.#process.pid]
  }

  get exited(): Promise<ExitCause> {
    return this.#process.exited
  }

  /** Why the process is about to end. */
  set fault(error: ServeError | undefined) {
    this.#process.fault ??= error
  }

  /** The exception that it has printed while it loaded, and what mends it; undefined: none. */
  get raised(): string | undefined {
    return this.#tracebacks?.told
  }

  /** The handlers are loaded: what they print from now on is no reason of a failed load. */
  loaded(): void {
    this.#tracebacks = undefined
  }

  /**
   * A rank closed its socket, so it is of no use. Waits briefly for its exit code, because its requests wait
   * for the result.
   */
  endSoon(): void {
    const fault = new ServeError('WORKER_LOST', 'The worker closed its connection')
    if (this.#ranks === 0) this.#process.endSoon(EXIT_CODE_LAG_MS, fault)
    else {
      this.fault = fault
      this.kill()
    }
  }

  terminate(): void {
    this.#process.kill('SIGTERM')
  }

  /** Without a keeper torchrun's ranks, which have sessions of their own, would survive it. */
  kill(): void {
    if (!this.#process.kept && this.#ranks > 0 && this.#pids.length < this.#ranks) this.#terminateThenKill()
    else {
      this.#endRanks()
      this.#process.kill('SIGKILL')
    }
  }

  #endRanks(): void {
    for (const pid of this.#living) {
      killSession(pid)
      orphanGuard.remove(pid)
    }
    this.#living.clear()
  }

  #terminateThenKill(): void {
    this.terminate()
    const timer = setTimeout(() => {
      this.#endRanks()
      this.#process.kill('SIGKILL')
    }, TORCHRUN_LAG_MS)
    void this.exited.then(() => {
      clearTimeout(timer)
    })
  }

  #look(line: string): void {
    const pid = PID.exec(line)?.[1]
    if (pid !== undefined) this.#found(Number(pid))
    if (!line.endsWith(STARTED)) return
    this.#startedRanks += 1
    if (this.#startedRanks === Math.max(1, this.#ranks)) this.#resolveStarted()
  }

  #found(pid: number): void {
    this.#pids.push(pid)
    if (this.#ranks === 0 || this.#process.kept) return
    this.#living.add(pid)
    orphanGuard.add(pid)
  }
}
