import type { Dialect } from '../../protocol/dialects.ts'
import { ServeError } from '../../protocol/errors.ts'
import type { FromWorker, LoadMessage, PredictMessage, ToWorker } from '../../protocol/messages.ts'
import type { ExitCause } from './exit-cause.ts'
import { RankProcess, type RankOptions } from './rank-process.ts'

export interface RankGroupEvents {
  /** Every rank is connected; the handlers are being loaded. */
  onConnected(): void
  /** Rank 0 has loaded its handler, which speaks these dialects. */
  onDialects(dialects: readonly Dialect[]): void
  onMessage(rank: number, message: FromWorker): void
  onItem(rank: number, id: number, chunk: Buffer, from: number, to: number): void
  onOutput(rank: number, stream: 'stdout' | 'stderr', line: string): void
  /** Once, when the first process of the group has ended; the others are being killed then. */
  onDeath(rank: number, cause: ExitCause): void
}

export interface RankGroupOptions {
  ranks: RankOptions[]
  /** `pp`: only rank 0 gets requests; the ranks pass data among themselves (spec 2.4). */
  requestsToRankZeroOnly: boolean
  load: LoadMessage
  /** Milliseconds from now to the loaded handler in every rank. */
  startupTimeoutMs: number
}

/**
 * The processes of one worker, from start to end: one for a plain model, N for a parallel one. They live and die
 * together, and to the outside they are one: requests and cancels go to every rank, answers are taken from rank 0.
 */
export class RankGroup {
  readonly #options: RankGroupOptions
  readonly #events: RankGroupEvents
  readonly #ranks: RankProcess[]
  readonly #loading: { resolve: () => void; reject: (error: ServeError) => void }[] = []
  #connected = false
  #dead = false

  constructor(options: RankGroupOptions, events: RankGroupEvents) {
    this.#options = options
    this.#events = events
    this.#ranks = options.ranks.map(
      (rank) =>
        new RankProcess(rank, {
          onMessage: (from, message) => {
            this.#message(from, message)
          },
          onItem: events.onItem,
          onOutput: events.onOutput,
          onExit: (from, cause) => {
            this.#exit(from, cause)
          },
        }),
    )
  }

  get pid(): number {
    return this.#ranks[0]!.pid
  }

  /** Of every rank. */
  get pids(): number[] {
    return this.#ranks.map((rank) => rank.pid)
  }

  /** How many ranks get a request, and have to finish it. */
  get servingRanks(): number {
    return this.#options.requestsToRankZeroOnly ? 1 : this.#ranks.length
  }

  /** Connects to every rank and loads the handler in each. @throws ServeError, the first failure; kill the group then */
  async load(): Promise<void> {
    const timeout = timeLimit(this.#options.startupTimeoutMs)
    try {
      await Promise.race([this.#connectAndLoad(), timeout.expired])
    } finally {
      timeout.clear()
    }
  }

  /** To every rank that gets requests. */
  send(message: PredictMessage | Extract<ToWorker, { type: 'cancel' | 'input' }>): void {
    for (let rank = 0; rank < this.servingRanks; rank += 1) this.#ranks[rank]!.send(message)
  }

  /** To the rank that answers. */
  sendToFirst(message: ToWorker): void {
    this.#ranks[0]!.send(message)
  }

  /** Asks every rank to finish and leave; kills what is left after `graceMs`. False when something had to be killed. */
  async stop(graceMs: number): Promise<boolean> {
    this.#dead = true
    let killed = false
    const timer = setTimeout(() => {
      killed = true
      this.#signal('SIGKILL')
    }, graceMs)
    if (this.#connected) await this.#unload()
    else this.#signal('SIGTERM')
    await this.exited()
    clearTimeout(timer)
    return !killed
  }

  /** Ends every process at once. */
  kill(): void {
    this.#signal('SIGKILL')
  }

  async exited(): Promise<void> {
    await Promise.all(this.#ranks.map((rank) => rank.exited))
  }

  /** Where only rank 0 has the requests, the others would leave at once: they must not before it has finished. */
  async #unload(): Promise<void> {
    const [first, ...others] = this.#ranks
    first!.send({ type: 'unload' })
    if (this.#options.requestsToRankZeroOnly) await first!.exited
    for (const rank of others) rank.send({ type: 'unload' })
  }

  async #connectAndLoad(): Promise<void> {
    await Promise.all(this.#ranks.map((rank) => rank.ready))
    this.#connected = true
    this.#events.onConnected()
    const loaded = Promise.all(
      this.#ranks.map(
        (_rank, index) =>
          new Promise<void>((resolve, reject) => {
            this.#loading[index] = { resolve, reject }
          }),
      ),
    )
    for (const rank of this.#ranks) rank.send(this.#options.load)
    await loaded
  }

  #message(rank: number, message: FromWorker): void {
    if (message.type !== 'loaded') {
      this.#events.onMessage(rank, message)
    } else if (message.error === undefined) {
      if (rank === 0) this.#events.onDialects(message.dialects ?? [])
      this.#loading[rank]?.resolve()
    } else {
      this.#loading[rank]?.reject(ServeError.fromWire(message.error))
    }
  }

  #exit(rank: number, cause: ExitCause): void {
    const message = this.#ranks.length > 1 ? `Rank ${rank}: ${cause.reason}` : cause.reason
    this.#loading[rank]?.reject(
      new ServeError(cause.outOfMemory ? 'OUT_OF_MEMORY' : 'WORKER_START_FAILED', message, {
        detail: cause.stderr.join('\n'),
      }),
    )
    if (this.#dead) return
    this.#dead = true
    this.#events.onDeath(rank, { ...cause, reason: message })
    this.kill()
  }

  #signal(signal: 'SIGTERM' | 'SIGKILL'): void {
    for (const rank of this.#ranks) rank.kill(signal)
  }
}

function timeLimit(ms: number): { expired: Promise<never>; clear: () => void } {
  let timer: NodeJS.Timeout | undefined
  const expired = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(
        new ServeError(
          'WORKER_START_FAILED',
          `The worker was not loaded within ${ms / 1000} s (startupTimeout)`,
        ),
      )
    }, ms)
  })
  return {
    expired,
    clear: () => {
      clearTimeout(timer)
    },
  }
}
