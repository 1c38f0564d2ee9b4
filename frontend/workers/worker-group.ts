import type { ServeError } from '../../common/errors.ts'
import type { NativeMethod } from '../../common/handler-methods.ts'
import type { FromWorker, PredictMessage, ToWorker } from '../../protocol/messages.ts'
import type { ExitCause } from './exit-cause.ts'
import type { WorkerOutput } from './worker-state.ts'

/** What every rank with requests gets. */
export type RankMessage = PredictMessage | Extract<ToWorker, { type: 'cancel' | 'input' }>
/** What only the rank gets that answers. */
export type FirstRankMessage = Extract<ToWorker, { type: 'credit' | 'ping' }>

export interface WorkerGroupEvents {
  /** Everything is connected; the handlers are being loaded. */
  onConnected(): void
  onMessage(rank: number, message: FromWorker): void
  /** See FrontendEvents. */
  onItem(rank: number, id: number, chunk: Buffer, from: number, to: number): void
  /** A request cannot be answered any more though the handler works on it; its end follows. */
  onBroken(id: number, error: ServeError): void
  /** `prefix` tells one rank of several from the others. */
  onOutput(stream: WorkerOutput, line: string, prefix: string): void
  /** Once, when the group ended unasked; whatever is left of it is being killed then. */
  onDeath(cause: ExitCause): void
}

/**
 * The processes of one start of one worker, and the way to talk to them. They live and die together, and to the outside they are
 * one: requests and cancels go to every rank that gets requests, answers are taken from rank 0. The runtime of a model decides
 * which kind it has: our own workers (rank-group.ts), or TorchServe's (python/).
 */
export interface WorkerGroup {
  /** -1 before there is a process. */
  readonly pid: number
  /** Of every rank. */
  readonly pids: number[]
  /** How many ranks say that they have finished a request: so many are waited for. */
  readonly finishingRanks: number
  /** Whether it answers `ping`. */
  readonly answersPings: boolean
  /** Whether a handler hears that its request was cancelled. */
  readonly hearsCancels: boolean
  /** The native methods of the handler; known once it is loaded. */
  readonly methods: readonly NativeMethod[]
  /** Connects to every rank and loads the handler in each; once. @throws ServeError, the first failure; kill the group then */
  load(): Promise<void>
  send(message: RankMessage): void
  sendToFirst(message: FirstRankMessage): void
  /** Lets the ranks finish what they have and leave; kills what is left after `graceMs`. False when something had to be killed. */
  stop(graceMs: number): Promise<boolean>
  /** Ends every process at once. */
  kill(): void
  /** Resolves when no process is left. */
  exited(): Promise<void>
}
