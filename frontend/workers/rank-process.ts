import { connect } from 'node:net'
import { within } from '../../common/timer.ts'
import { type Channel, type FrontendEvents, frontendChannel, type TakeItem } from '../../protocol/channel.ts'
import { ServeError } from '../../common/errors.ts'
import { PROTOCOL_VERSION, type FromWorker, type ToWorker } from '../../protocol/messages.ts'
import { type ExitCause, whileLoading } from './exit-cause.ts'
import { type CommandLine, WorkerProcess } from './worker-process.ts'
import { paceReports } from './read-lines.ts'
import type { WorkerOutput } from './worker-state.ts'

export interface RankOptions {
  rank: number
  commandLine: CommandLine
  socketPath: string
  maxFrameBytes: number
}

export interface RankEvents {
  onMessage(rank: number, message: FromWorker): void
  /** Who takes the stream items of the rank; asked for once. */
  itemsOf(rank: number): TakeItem
  onOutput(rank: number, stream: WorkerOutput, line: string): void
  /** Called once, when the process has ended for any reason. */
  onExit(rank: number, cause: ExitCause): void
}

/** The worker prints this line when it listens, as TorchServe's does. */
const STARTED = 'Torch worker started.'

/** Milliseconds to read what a process wrote before its end: its answers say which requests had begun. */
const LAST_WORDS_MS = 1000

/** One process of a worker as its group sees it. */
export type Rank = Pick<RankProcess, 'pid' | 'ready' | 'exited' | 'channel' | 'kill'>

/** One process of a worker, and the connection to it. */
export class RankProcess {
  readonly #options: RankOptions
  readonly #events: RankEvents
  readonly #process: WorkerProcess
  #channel: Channel<ToWorker> | undefined
  #closed: Promise<void> | undefined
  #resolveReady!: () => void
  #rejectReady!: (error: ServeError) => void
  /** Resolves when the process is connected and has sent `hello`; rejects when it ended before. */
  readonly ready: Promise<void>

  constructor(options: RankOptions, events: RankEvents) {
    this.#options = options
    this.#events = events
    this.ready = new Promise((resolve, reject) => {
      this.#resolveReady = resolve
      this.#rejectReady = reject
    })
    this.ready.catch(() => undefined)
    this.#process = new WorkerProcess(options.commandLine, {
      onLine: (stream, line) => {
        if (stream === 'stdout' && line === STARTED && this.#channel === undefined) this.#connect()
        else events.onOutput(options.rank, stream, line)
      },
      onExit: (cause) => {
        void this.#exit(cause)
      },
    })
  }

  get pid(): number {
    return this.#process.pid
  }

  /** Resolves when the process has ended. */
  get exited(): Promise<ExitCause> {
    return this.#process.exited
  }

  /** Undefined: not connected yet. */
  get channel(): Pick<Channel<ToWorker>, 'send' | 'unsentBytes'> | undefined {
    return this.#channel
  }

  kill(signal: 'SIGTERM' | 'SIGKILL'): void {
    this.#process.kill(signal)
  }

  #connect(): void {
    const socket = connect(this.#options.socketPath)
    const refused = (cause: Error): void => {
      this.#process.fault ??= new ServeError(
        'WORKER_START_FAILED',
        `The worker cannot be reached: ${cause.message}`,
        {
          cause,
        },
      )
      this.kill('SIGKILL')
    }
    socket.once('error', refused).once('connect', () => socket.off('error', refused))
    this.#closed = new Promise((resolve) => socket.once('close', () => resolve()))
    const events: FrontendEvents = {
      onMessage: (message, bytes) => {
        if (message.type === 'log') paceReports(socket, bytes, 1)
        else if (message.type === 'metric') paceReports(socket, bytes, message.values.length)
        if (message.type === 'ready') this.#hello(message.protocolVersion)
        else this.#events.onMessage(this.#options.rank, message)
      },
      onItem: this.#events.itemsOf(this.#options.rank),
      onClose: (error) => {
        if (error?.code === 'PROTOCOL') this.#process.fault ??= error
        this.#process.endSoon()
      },
    }
    this.#channel = frontendChannel(socket, this.#options.maxFrameBytes, events)
  }

  #hello(version: number): void {
    if (version === PROTOCOL_VERSION) {
      this.#resolveReady()
      return
    }
    this.#process.fault = new ServeError(
      'PROTOCOL',
      `The worker must use protocol version ${PROTOCOL_VERSION}, not ${version}`,
    )
    this.kill('SIGKILL')
  }

  async #exit(cause: ExitCause): Promise<void> {
    if (this.#closed !== undefined) await within(LAST_WORDS_MS, this.#closed)
    this.#channel?.close(new ServeError('WORKER_LOST', cause.reason))
    this.#rejectReady(
      new ServeError('WORKER_START_FAILED', cause.reason, {
        detail: cause.stderr.join('\n'),
        isPrinted: true,
        publicCause: whileLoading(cause),
        cause: cause.cause,
      }),
    )
    this.#events.onExit(this.#options.rank, cause)
  }
}
