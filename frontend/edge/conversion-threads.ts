import { Worker } from 'node:worker_threads'
import { ServeError, type WireError } from '../../common/errors.ts'
import { processors } from '../../common/processors.ts'
import { startTimer } from '../../common/timer.ts'
import { queueFull } from '../jobs/queue-full.ts'

/** A body of more bytes is converted in a thread: it may take 200 ns a byte, and others would wait. */
export const INLINE_BYTES = 131_072

/** Functions that a thread runs, by name. Arguments and results are plain data, bytes, and maps. */
export type Conversions = Readonly<Record<string, (task: never) => Converted<unknown>>>

/** A result, and those of its bytes that are handed over without a copy. */
export interface Converted<Value> {
  readonly value: Value
  readonly bytes: readonly Uint8Array[]
}

/** What the thread answers. */
export type ThreadAnswer = { readonly value: unknown } | { readonly error: WireError }

type TaskOf<Table extends Conversions, Name extends keyof Table> = Parameters<Table[Name]>[0] & Task
type ValueOf<Table extends Conversions, Name extends keyof Table> = ReturnType<Table[Name]>['value']

/** Plain data. Its body is handed over to the thread; other bytes are copied there. */
interface Task {
  readonly body?: Uint8Array
}

interface Waiting {
  readonly name: string
  readonly task: Task
  resolve(value: unknown): void
  reject(error: ServeError): void
}

/** For tests, which see the threads and set smaller limits. */
interface ThreadOptions {
  /** Milliseconds after which an unused thread gives its memory back. */
  readonly idleMs?: number
  /** MiB of the heap of each thread; undefined: as Node.js has it. */
  readonly heapMb?: number
  readonly onThread?: (worker: Worker) => void
}

/** Conversions at the same time: half of the processors, because workers and the event loop need some too. */
const MAX_THREADS = Math.max(1, Math.min(4, processors() >> 1))
/** Those that wait keep their bodies in memory. */
const MAX_WAITING = 64
const IDLE_MS = 30_000

/**
 * Threads that convert large bodies, so that none delays other requests. Each has one conversion at a time,
 * and starts when it is needed; a conversion that ends its thread fails alone.
 */
export class ConversionThreads<Table extends Conversions> {
  readonly #entry: URL
  readonly #options: ThreadOptions
  readonly #idle: Thread[] = []
  readonly #waiting: Waiting[] = []
  #count = 0

  /** `entry`: the module that calls `serveConversions` with the functions. */
  constructor(entry: URL, options: ThreadOptions = {}) {
    this.#entry = entry
    this.#options = options
  }

  /**
   * Runs a function of the table on a copy of `task`, whose bytes must not be changed before this settles.
   * @throws ServeError what the function throws; QUEUE_FULL when too many wait; OUT_OF_MEMORY
   */
  run<Name extends keyof Table & string>(
    name: Name,
    task: TaskOf<Table, Name>,
  ): Promise<ValueOf<Table, Name>> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.length >= MAX_WAITING) {
        reject(
          queueFull(`${MAX_WAITING} large requests wait to be converted, the most that may. Retry later.`),
        )
        return
      }
      // A copy, because the bytes may lie in a buffer that others share.
      const { body }: Task = task
      const own: Task = body === undefined ? task : { ...(task as Task), body: new Uint8Array(body) }
      this.#waiting.push({ name, task: own, resolve: resolve, reject })
      this.#next()
    })
  }

  #next(): void {
    if (this.#waiting.length === 0) return
    const thread = this.#idle.pop() ?? this.#start()
    thread?.run(this.#waiting.shift()!)
  }

  #start(): Thread | undefined {
    if (this.#count >= MAX_THREADS) return undefined
    this.#count += 1
    const thread: Thread = new Thread(this.#entry, this.#options, {
      free: () => {
        this.#idle.push(thread)
        this.#next()
      },
      ended: () => {
        this.#count -= 1
        const at = this.#idle.indexOf(thread)
        if (at >= 0) this.#idle.splice(at, 1)
        this.#next()
      },
    })
    return thread
  }
}

interface Owner {
  free(): void
  ended(): void
}

class Thread {
  readonly #worker: Worker
  readonly #owner: Owner
  readonly #idleMs: number
  #current: Waiting | undefined
  #idleTimer: NodeJS.Timeout | undefined

  constructor(entry: URL, { idleMs = IDLE_MS, heapMb, onThread }: ThreadOptions, owner: Owner) {
    this.#owner = owner
    this.#idleMs = idleMs
    this.#worker = new Worker(entry, { execArgv: [], resourceLimits: { maxOldGenerationSizeMb: heapMb } })
    this.#worker.unref()
    onThread?.(this.#worker)
    this.#worker
      .on('message', (answer: ThreadAnswer) => this.#answered(answer))
      .on('error', (cause) => this.#settle((task) => task.reject(failed(cause))))
      .on('exit', () => {
        clearTimeout(this.#idleTimer)
        this.#settle((task) => task.reject(failed(new Error('its thread ended early'))))
        owner.ended()
      })
  }

  run(waiting: Waiting): void {
    clearTimeout(this.#idleTimer)
    this.#current = waiting
    const { name, task } = waiting
    const moved = task.body === undefined ? [] : [task.body.buffer as ArrayBuffer]
    this.#worker.postMessage({ name, task }, moved)
  }

  #answered(answer: ThreadAnswer): void {
    this.#settle((task) => {
      if ('error' in answer) task.reject(ServeError.fromWire(answer.error))
      else task.resolve(answer.value)
    })
    this.#idleTimer = startTimer(() => void this.#worker.terminate(), this.#idleMs).unref()
    this.#owner.free()
  }

  #settle(settle: (task: Waiting) => void): void {
    const current = this.#current
    this.#current = undefined
    if (current !== undefined) settle(current)
  }
}

function failed(cause: Error): ServeError {
  return (cause as NodeJS.ErrnoException).code === 'ERR_WORKER_OUT_OF_MEMORY'
    ? new ServeError('OUT_OF_MEMORY', 'The conversion of the body takes too much memory', { cause })
    : new ServeError('INTERNAL', `The body could not be converted: ${cause.message}`, { cause })
}
