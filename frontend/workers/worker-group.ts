import { ServeError } from '../../common/errors.ts'
import type { ListedMethod } from '../../common/handler-methods.ts'
import type { TakeItem } from '../../protocol/channel.ts'
import type { FromWorker, PredictMessage, ToWorker } from '../../protocol/messages.ts'
import type { ExitCause } from './exit-cause.ts'
import type { WorkerOutput } from './worker-state.ts'
import { startTimer } from '../../common/timer.ts'

/** Messages for every rank that gets requests. */
export type RankMessage =
  PredictMessage | Extract<ToWorker, { type: 'cancel' | 'input' | 'withdraw' | 'sequenceEnd' }>
/** Messages for rank 0 only, which sends the responses. */
export type FirstRankMessage = Extract<ToWorker, { type: 'credit' | 'ping' }>

export interface WorkerGroupEvents {
  /** All ranks are connected; the handlers are being loaded. */
  onConnected(): void
  onMessage(rank: number, message: FromWorker): void
  /** Who takes the stream items of a rank; asked for once for each connection. */
  itemsOf(rank: number): TakeItem
  /** A request can no longer be answered, but the handler still works on it; its end follows. */
  onBroken(id: number, error: ServeError): void
  /** Its handler computes on the CPU, because its GPU cannot be used. `why`: the words of the library. */
  onUnusableDevice(why: string): void
  /** `prefix` identifies the rank if there are several. */
  onOutput(stream: WorkerOutput, line: string, prefix: string): void
  /** Called once when the group ended by itself; its remaining processes are being killed then. */
  onDeath(cause: ExitCause): void
}

/**
 * The processes of one start of one worker, and how to talk to them. They live and die together and act as
 * one: requests and cancels go to every rank that gets requests, and responses come from rank 0. The model's
 * runtime determines the kind: our own workers (rank-group.ts) or TorchServe's (python/).
 */
export interface WorkerGroup {
  /** -1 before there is a process. */
  readonly pid: number
  /** The pids of all ranks. */
  readonly pids: readonly number[]
  /** How many ranks report that they have finished a request; all of them are awaited. */
  readonly finishingRanks: number
  /** Bytes that were sent to the ranks and that they have not taken. */
  readonly unsentBytes: number
  /**
   * Whether the worker answers pings, waits for credit, and tells the handler of cancels. TorchServe's Python
   * worker does none of it.
   */
  readonly isNative: boolean
  /** Whether the worker keeps batches that begin later, and gives them back. */
  readonly takesBatchesAhead: boolean
  /** The handler's methods; known once it is loaded. */
  readonly methods: readonly ListedMethod[]
  /**
   * Connects to every rank and loads the handler in each. Call it once.
   * @throws ServeError of the first failure; kill the group then
   */
  load(): Promise<void>
  send(message: RankMessage): void
  sendToFirst(message: FirstRankMessage): void
  /**
   * Lets the ranks finish their requests and exit; kills the rest after `graceMs`. Returns false if something
   * was killed.
   */
  stop(graceMs: number): Promise<boolean>
  /** Kills every process at once. */
  kill(): void
  /** Resolves when no process that has started is left, and what they printed is read. */
  exited(): Promise<void>
}

/** Waits for a part of a worker's start. @throws ServeError WORKER_START_FAILED with `message` after `ms` */
export async function withinTime<T>(work: Promise<T>, ms: number, message: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const expired = new Promise<never>((_resolve, reject) => {
    timer = startTimer(() => {
      reject(new ServeError('WORKER_START_FAILED', message, { publicCause: 'it was not loaded in time' }))
    }, ms)
  })
  try {
    return await Promise.race([work, expired])
  } finally {
    clearTimeout(timer)
  }
}
