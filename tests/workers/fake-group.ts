import { ServeError } from '../../common/errors.ts'
import type { ListedMethod } from '../../common/handler-methods.ts'
import type { FromWorker } from '../../protocol/messages.ts'
import type { ExitCause } from '../../frontend/workers/exit-cause.ts'
import type {
  FirstRankMessage,
  RankMessage,
  WorkerGroup,
  WorkerGroupEvents,
} from '../../frontend/workers/worker-group.ts'

/** The processes of one start of a worker, which the test plays. */
export class FakeGroup implements WorkerGroup {
  readonly events: WorkerGroupEvents
  readonly pid = 4242
  readonly pids = [4242]
  unsentBytes = 0
  finishingRanks = 1
  isNative = true
  takesBatchesAhead = true
  methods: readonly ListedMethod[] = []
  readonly sent: (RankMessage | FirstRankMessage)[] = []
  readonly graces: number[] = []
  kills = 0
  /** How often somebody asked for its end. */
  endsAsked = 0
  /** Its processes start while it loads, as those of Python workers: nothing is left of it before. */
  startsLate = false
  #isConnected = false
  readonly #loading = settled<undefined>()
  readonly #stopping = settled<boolean>()
  readonly #exited = settled<undefined>()

  constructor(events: WorkerGroupEvents) {
    this.events = events
  }

  load(): Promise<void> {
    return this.#loading.promise
  }

  send(message: RankMessage): void {
    this.sent.push(message)
  }

  sendToFirst(message: FirstRankMessage): void {
    this.sent.push(message)
  }

  stop(graceMs: number): Promise<boolean> {
    this.graces.push(graceMs)
    return this.#stopping.promise
  }

  kill(): void {
    this.kills += 1
  }

  exited(): Promise<void> {
    this.endsAsked += 1
    return this.startsLate && !this.#isConnected ? Promise.resolve() : this.#exited.promise
  }

  /** Every rank is connected, and the handlers load. */
  connected(): void {
    this.#isConnected = true
    this.events.onConnected()
  }

  /** The handlers are loaded. */
  async loaded(): Promise<void> {
    this.connected()
    this.#loading.resolve(undefined)
    await turns()
  }

  async loadFails(code: ServeError['code'], message: string, detail?: string): Promise<void> {
    this.#loading.reject(new ServeError(code, message, { detail }))
    await turns()
  }

  /** The last process has ended. */
  async ends(): Promise<void> {
    this.#exited.resolve(undefined)
    await turns()
  }

  /** A process ended unasked, and the others with it. */
  async dies(cause: Partial<ExitCause> = {}): Promise<void> {
    const reason = 'The process exited with code 7'
    const publicCause = 'its worker exited with code 7'
    this.events.onDeath({ at: new Date(0), reason, publicCause, stderr: [], outOfMemory: false, ...cause })
    await this.ends()
  }

  /** What it does after `stop`: `clean` false when something had to be killed. */
  async stopped(clean = true): Promise<void> {
    this.#stopping.resolve(clean)
    await turns()
  }

  answer(id: number, body = 'answer'): void {
    this.message({ type: 'response', id, body: Buffer.from(body) })
  }

  message(message: FromWorker, rank = 0): void {
    this.events.onMessage(rank, message)
  }
}

interface Settled<T> {
  promise: Promise<T>
  resolve: (value: T) => void
  reject: (error: Error) => void
}

function settled<T>(): Settled<T> {
  let resolve!: (value: T) => void
  let reject!: (error: Error) => void
  const promise = new Promise<T>((yes, no) => {
    resolve = yes
    reject = no
  })
  return { promise, resolve, reject }
}

/** Lets promises run that are resolved already; it needs no timer. */
export async function turns(): Promise<void> {
  for (let k = 0; k < 10; k += 1) await Promise.resolve()
}
