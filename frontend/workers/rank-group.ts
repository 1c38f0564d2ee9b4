import type { ListedMethod } from '../../common/handler-methods.ts'
import { ServeError } from '../../common/errors.ts'
import { startTimer } from '../../common/timer.ts'
import type { FromWorker, LoadMessage } from '../../protocol/messages.ts'
import { type ExitCause, HANDLER_THREW, whileLoading } from './exit-cause.ts'
import { type Rank, type RankEvents, type RankOptions, RankProcess } from './rank-process.ts'
import {
  type FirstRankMessage,
  type RankMessage,
  withinTime,
  type WorkerGroup,
  type WorkerGroupEvents,
} from './worker-group.ts'

export interface RankGroupOptions {
  ranks: RankOptions[]
  /** Called when all ranks have ended. */
  cleanUp: () => void
  /** With `pp` only rank 0 gets requests, and the ranks exchange data. */
  requestsToRankZeroOnly: boolean
  /** Whether batches may wait at its process while another one runs. */
  takesBatchesAhead: boolean
  load: LoadMessage
  /** Milliseconds until the handler is loaded in every rank. */
  startupTimeoutMs: number
}

type StartRank = (options: RankOptions, events: RankEvents) => Rank

const startProcess: StartRank = (options, events) => new RankProcess(options, events)

/**
 * A worker of ours, in Node.js or Python: one process for a plain model, N for a parallel one, with a
 * connection to each.
 */
export class RankGroup implements WorkerGroup {
  readonly isNative = true
  readonly #options: RankGroupOptions
  readonly #events: WorkerGroupEvents
  readonly #ranks: Rank[]
  readonly #loading: { resolve: () => void; reject: (error: ServeError) => void }[] = []
  methods: readonly ListedMethod[] = []
  #connected = false
  #dead = false

  /** `startRank` starts one process; default: really. */
  constructor(options: RankGroupOptions, events: WorkerGroupEvents, startRank: StartRank = startProcess) {
    this.#options = options
    this.#events = events
    this.#ranks = options.ranks.map((rank) =>
      startRank(rank, {
        onMessage: (from, message) => {
          this.#message(from, message)
        },
        itemsOf: events.itemsOf,
        onOutput: (from, stream, line) => {
          events.onOutput(stream, line, options.ranks.length > 1 ? `[rank ${from}] ` : '')
        },
        onExit: (from, cause) => {
          this.#exit(from, cause)
        },
      }),
    )
    void this.exited().then(options.cleanUp)
  }

  get pid(): number {
    return this.#ranks[0]!.pid
  }

  get pids(): number[] {
    return this.#ranks.map((rank) => rank.pid)
  }

  /** Ranks would have to give the same batches back. */
  get takesBatchesAhead(): boolean {
    return this.#options.takesBatchesAhead && this.#ranks.length === 1
  }

  get finishingRanks(): number {
    return this.#options.requestsToRankZeroOnly ? 1 : this.#ranks.length
  }

  async load(): Promise<void> {
    const ms = this.#options.startupTimeoutMs
    await withinTime(
      this.#connectAndLoad(),
      ms,
      `The worker was not loaded within ${ms / 1000} s (startupTimeout)`,
    )
  }

  send(message: RankMessage): void {
    for (let rank = 0; rank < this.finishingRanks; rank += 1) this.#ranks[rank]!.channel?.send(message)
  }

  get unsentBytes(): number {
    return this.#ranks.reduce((bytes, { channel }) => bytes + (channel?.unsentBytes ?? 0), 0)
  }

  sendToFirst(message: FirstRankMessage): void {
    this.#ranks[0]!.channel?.send(message)
  }

  async stop(graceMs: number): Promise<boolean> {
    this.#dead = true
    let killed = false
    const timer = startTimer(() => {
      killed = true
      this.#signal('SIGKILL')
    }, graceMs)
    if (this.#connected) await this.#unload()
    else this.#signal('SIGTERM')
    await this.exited()
    clearTimeout(timer)
    return !killed
  }

  kill(): void {
    this.#signal('SIGKILL')
  }

  async exited(): Promise<void> {
    await Promise.all(this.#ranks.map((rank) => rank.exited))
  }

  /**
   * If only rank 0 has requests, the other ranks would exit at once; they must wait until rank 0 has
   * finished.
   */
  async #unload(): Promise<void> {
    const [first, ...others] = this.#ranks
    first!.channel?.send({ type: 'unload' })
    if (this.#options.requestsToRankZeroOnly) await first!.exited
    for (const rank of others) rank.channel?.send({ type: 'unload' })
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
    for (const rank of this.#ranks) rank.channel?.send(this.#options.load)
    await loaded
  }

  #message(rank: number, message: FromWorker): void {
    if (message.type !== 'loaded') {
      this.#events.onMessage(rank, message)
    } else if (message.error === undefined) {
      if (rank === 0) this.methods = message.methods ?? []
      this.#loading[rank]?.resolve()
    } else {
      const { error } = message
      const threw = error.code === 'INVALID_MODEL' ? undefined : HANDLER_THREW
      this.#loading[rank]?.reject(ServeError.fromWire(error, threw))
    }
  }

  #exit(rank: number, cause: ExitCause): void {
    const message = this.#ranks.length > 1 ? `Rank ${rank}: ${cause.reason}` : cause.reason
    this.#loading[rank]?.reject(
      new ServeError(cause.outOfMemory ? 'OUT_OF_MEMORY' : 'WORKER_START_FAILED', message, {
        detail: cause.stderr.join('\n'),
        isPrinted: true,
        publicCause: whileLoading(cause),
        cause: cause.cause,
      }),
    )
    if (this.#dead) return
    this.#dead = true
    this.#events.onDeath({ ...cause, reason: message })
    this.kill()
  }

  #signal(signal: 'SIGTERM' | 'SIGKILL'): void {
    for (const rank of this.#ranks) rank.kill(signal)
  }
}
