import { ServeError } from '../../../common/errors.ts'
import type { ExitCause } from '../exit-cause.ts'
import { type CommandLine, type ProcessEvents, WorkerProcess } from '../worker-process.ts'
import { startError } from './load-error.ts'
import type { OtfLoad } from './otf/encode.ts'
import { Tracebacks } from './tracebacks.ts'

/** A rank prints this line when it accepts a connection (model_service_worker.py). */
const STARTED = 'Torch worker started.'
/** Python may take seconds to exit once PyTorch is loaded. */
const EXIT_CODE_LAG_MS = 250

/**
 * The process that was started for a TorchServe worker: its only rank, or torchrun with one process per rank.
 */
export class PythonProcess {
  readonly #process: WorkerProcess
  readonly #ranks: number
  #startedRanks = 0
  /** Undefined: the handlers are loaded. */
  #tracebacks: Tracebacks | undefined
  #resolveStarted!: () => void
  #rejectStarted!: (error: ServeError) => void
  /** Resolves when every rank listens; rejects when the process exits before. */
  readonly started: Promise<void>

  /** @param ranks 0: the process is the worker; else the number of ranks that torchrun starts */
  constructor(commandLine: CommandLine, load: OtfLoad, ranks: number, events: ProcessEvents) {
    this.#tracebacks = new Tracebacks(load)
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
      this.#rejectStarted(startError(cause, this.raised))
      events.onExit(cause)
    }
    // TorchServe's worker logs to stdout, errors included.
    this.#process = new WorkerProcess(commandLine, { onLine, onExit }, ['stdout', 'stderr'])
  }

  /** Its ranks. */
  get pids(): readonly number[] {
    return this.#process.pids
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

  kill(): void {
    this.#process.kill('SIGKILL')
  }

  #look(line: string): void {
    if (!line.endsWith(STARTED)) return
    this.#startedRanks += 1
    if (this.#startedRanks === Math.max(1, this.#ranks)) this.#resolveStarted()
  }
}
