import { connect } from 'node:net'
import { execa, type ResultPromise } from 'execa'
import { frontendChannel, type Channel } from '../../protocol/channel.ts'
import { ServeError } from '../../protocol/errors.ts'
import { PROTOCOL_VERSION, type FromWorker, type ToWorker } from '../../protocol/messages.ts'
import { describeExit, type ExitCause } from './exit-cause.ts'
import { readLines } from './lines.ts'

export interface RankOptions {
  rank: number
  /** Command line after the Node binary. */
  args: string[]
  env: Record<string, string>
  cwd: string
  socketPath: string
  maxFrameBytes: number
}

export interface RankEvents {
  onMessage(rank: number, message: FromWorker): void
  /** See FrontendEvents. */
  onItem(rank: number, id: number, chunk: Buffer, from: number, to: number): void
  onOutput(rank: number, stream: 'stdout' | 'stderr', line: string): void
  /** Once, when the process has ended, whatever the reason. */
  onExit(rank: number, cause: ExitCause): void
}

/** Lines of stderr that are kept to explain a death. */
const KEPT_LINES = 20
/** The worker prints this when it listens (spec 4.7). */
const STARTED = 'Torch worker started.'
/** How long the output and the exit of a process may lag behind its socket. */
const EXIT_LAG_MS = 1000

/** One process of a worker, and the connection to it. */
export class RankProcess {
  readonly #options: RankOptions
  readonly #events: RankEvents
  readonly #process: ResultPromise<ProcessOptions>
  readonly #stderr: string[] = []
  #channel: Channel<ToWorker> | undefined
  #protocolError: ServeError | undefined
  #resolveReady!: () => void
  #rejectReady!: (error: ServeError) => void
  /** Resolves when the process is connected and has said hello; rejects when it ended before. */
  readonly ready: Promise<void>
  /** Resolves when the process has ended. */
  readonly exited: Promise<ExitCause>

  constructor(options: RankOptions, events: RankEvents) {
    this.#options = options
    this.#events = events
    this.ready = new Promise((resolve, reject) => {
      this.#resolveReady = resolve
      this.#rejectReady = reject
    })
    this.ready.catch(() => undefined)
    this.#process = execa(process.execPath, options.args, processOptions(options))
    readLines(this.#process.stdout, (line) => {
      this.#stdout(line)
    })
    readLines(this.#process.stderr, (line) => {
      if (this.#stderr.push(line) > KEPT_LINES) this.#stderr.shift()
      events.onOutput(options.rank, 'stderr', line)
    })
    this.exited = this.#watch()
    this.#letPipesGo()
  }

  get pid(): number {
    return this.#process.pid ?? -1
  }

  send(message: ToWorker): void {
    this.#channel?.send(message)
  }

  kill(signal: 'SIGTERM' | 'SIGKILL'): void {
    this.#process.kill(signal)
  }

  #stdout(line: string): void {
    if (line === STARTED && this.#channel === undefined) this.#connect()
    else this.#events.onOutput(this.#options.rank, 'stdout', line)
  }

  #connect(): void {
    const socket = connect(this.#options.socketPath)
    this.#channel = frontendChannel(socket, this.#options.maxFrameBytes, {
      onMessage: (message) => {
        if (message.type === 'ready') this.#hello(message.protocolVersion)
        else this.#events.onMessage(this.#options.rank, message)
      },
      onItem: (id, chunk, from, to) => {
        this.#events.onItem(this.#options.rank, id, chunk, from, to)
      },
      onClose: (error) => {
        this.#protocolError = error?.code === 'PROTOCOL' ? error : undefined
        this.#endSoon()
      },
    })
  }

  #hello(version: number): void {
    if (version === PROTOCOL_VERSION) {
      this.#resolveReady()
      return
    }
    this.#protocolError = new ServeError(
      'PROTOCOL',
      `The worker speaks protocol ${version}, not ${PROTOCOL_VERSION}`,
    )
    this.kill('SIGKILL')
  }

  /** Without its socket a process is of no use: it is about to leave, or made to. */
  #endSoon(): void {
    const timer = setTimeout(() => {
      this.kill('SIGKILL')
    }, EXIT_LAG_MS)
    void this.exited.then(() => {
      clearTimeout(timer)
    })
  }

  /** A process that the handler started may hold our pipes open: the worker's end must not wait for its end. */
  #letPipesGo(): void {
    const { stdout, stderr } = this.#process
    this.#process.once('exit', () => {
      const timer = setTimeout(() => {
        stdout.destroy()
        stderr.destroy()
      }, EXIT_LAG_MS)
      void this.exited.then(() => {
        clearTimeout(timer)
      })
    })
  }

  async #watch(): Promise<ExitCause> {
    const { exitCode, signal, originalMessage } = await this.#process
    const cause = describeExit({
      exitCode,
      signal,
      spawnError: exitCode === undefined && signal === undefined ? originalMessage : undefined,
      stderr: this.#stderr,
      protocolError: this.#protocolError,
    })
    this.#channel?.close(new ServeError('WORKER_LOST', cause.reason))
    this.#rejectReady(
      new ServeError('WORKER_START_FAILED', cause.reason, { detail: cause.stderr.join('\n') }),
    )
    this.#events.onExit(this.#options.rank, cause)
    return cause
  }
}

interface ProcessOptions {
  env: Record<string, string>
  extendEnv: false
  cwd: string
  stdin: 'pipe'
  stdout: 'pipe'
  stderr: 'pipe'
  buffer: false
  reject: false
  forceKillAfterDelay: false
}

/** stdin stays open: a worker leaves when it ends, so none outlives its frontend. */
function processOptions({ env, cwd }: RankOptions): ProcessOptions {
  return {
    env,
    extendEnv: false,
    cwd,
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'pipe',
    buffer: false,
    reject: false,
    forceKillAfterDelay: false,
  }
}
