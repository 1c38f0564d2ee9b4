import { Worker } from 'node:worker_threads'
import { ServeError, type WireError } from '../common/errors.ts'
import { startTimer } from '../common/timer.ts'
import type { ArchiveIdentity } from './hashed-file.ts'
import { threadModule } from './package-root.ts'
import { over, USE_FOLDER } from './unpack-budget.ts'
import type { UnpackTask } from './unpack-into.ts'
import { calledOff, Turns } from './turns.ts'

/** Result message of the thread. */
export type UnpackAnswer =
  /** Everything was unpacked. */
  { readonly identity: ArchiveIdentity } | { readonly error: WireError }

/** Archives that are unpacked in parallel; others wait. */
const THREADS = 2
const HEAP_MB = 256
/** Milliseconds after which an unused thread ends. A start with many archives needs it again at once. */
const IDLE_MS = 1_000

/** Threads that unpack archives, so that none can block the server. They start when they are needed. */
export class UnpackThreads {
  readonly #turns = new Turns(THREADS)
  readonly #idle: UnpackThread[] = []
  readonly #onThread: ((worker: Worker) => void) | undefined

  /** @param onThread for tests, which see the threads */
  constructor(onThread?: (worker: Worker) => void) {
    this.#onThread = onThread
  }

  /**
   * Unpacks in a thread. When this settles, the thread writes nothing more.
   * @param signal cancels it
   * @throws ServeError as unpackInto does; INVALID_ARCHIVE after `timeout` seconds (without the wait for a
   *   free thread); SHUTTING_DOWN when cancelled
   */
  async unpack(task: UnpackTask, signal?: AbortSignal): Promise<ArchiveIdentity> {
    await this.#turns.take(signal)
    try {
      return await (this.#idle.pop() ?? this.#start()).run(task, signal)
    } finally {
      this.#turns.give()
    }
  }

  #start(): UnpackThread {
    try {
      const thread = new UnpackThread(this.#idle)
      this.#onThread?.(thread.worker)
      return thread
    } catch (cause) {
      // The machine has no threads left, which is not the archive's fault.
      throw failed(cause)
    }
  }
}

/** One archive at a time. A failed one ends it: nothing of it may still write. */
class UnpackThread {
  readonly worker = new Worker(threadModule('model-archiver/unpack-worker'), {
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
  })
  /** Where it waits for the next archive. */
  readonly #idle: UnpackThread[]
  #idleTimer: NodeJS.Timeout | undefined
  #answered: (answer: UnpackAnswer) => void = () => undefined
  #failed: (error: ServeError) => void = () => undefined

  constructor(idle: UnpackThread[]) {
    this.#idle = idle
    this.worker
      .on('message', (answer: UnpackAnswer) => this.#answered(answer))
      .on('error', (cause) => this.#failed(failed(cause)))
      .on('exit', () => {
        this.#leaveIdle()
        this.#failed(failed(new Error('its thread ended early')))
      })
  }

  async run(task: UnpackTask, signal: AbortSignal | undefined): Promise<ArchiveIdentity> {
    clearTimeout(this.#idleTimer)
    this.worker.ref()
    const { timeout } = task.limits
    let timer: NodeJS.Timeout | undefined
    const stop = (): void => this.#failed(calledOff())
    try {
      const answer = await new Promise<UnpackAnswer>((resolve, reject) => {
        this.#answered = resolve
        this.#failed = reject
        signal?.addEventListener('abort', stop)
        if (signal?.aborted === true) stop()
        timer = startTimer(() => reject(tookTooLong(timeout)), timeout * 1000)
        this.worker.postMessage(task)
      })
      if ('error' in answer) throw ServeError.fromWire(answer.error)
      this.#becomeIdle()
      return answer.identity
    } catch (error) {
      await this.worker.terminate()
      throw error
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', stop)
    }
  }

  #becomeIdle(): void {
    this.worker.unref()
    this.#idle.push(this)
    this.#idleTimer = setTimeout(() => {
      this.#leaveIdle()
      void this.worker.terminate()
    }, IDLE_MS).unref()
  }

  #leaveIdle(): void {
    clearTimeout(this.#idleTimer)
    const at = this.#idle.indexOf(this)
    if (at >= 0) this.#idle.splice(at, 1)
  }
}

function tookTooLong(seconds: number): ServeError {
  return over(`The archive takes longer than ${seconds} s to unpack`, USE_FOLDER)
}

function failed(cause: unknown): ServeError {
  const { code, message } = cause as NodeJS.ErrnoException
  if (code === 'ERR_WORKER_OUT_OF_MEMORY')
    return new ServeError(
      'INVALID_ARCHIVE',
      `The archive takes more than ${HEAP_MB} MiB of memory to unpack.`,
    )
  return new ServeError('INTERNAL', `The archive could not be unpacked: ${message}`, { cause })
}
