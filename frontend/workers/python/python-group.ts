import { existsSync } from 'node:fs'
import { ServeError } from '../../../common/errors.ts'
import { startTimer } from '../../../common/timer.ts'
import { encodeLoad, type OtfLoad } from './otf/encode.ts'
import type { ExitCause } from '../exit-cause.ts'
import {
  type FirstRankMessage,
  type RankMessage,
  withinTime,
  type WorkerGroup,
  type WorkerGroupEvents,
} from '../worker-group.ts'
import { loadError, startError } from './load-error.ts'
import type { PythonLaunch } from './command-line.ts'
import { Connection, type LoadReply } from './connection.ts'
import { PythonProcess } from './python-process.ts'
import { PythonSession, type PythonSessionOptions } from './session.ts'

export interface PythonGroupOptions extends PythonSessionOptions {
  /** Called when the worker has ended, or will not be started. */
  cleanUp: () => void
  /** Finds the Python environment; may take seconds. @throws ServeError */
  launch(): Promise<PythonLaunch>
  load: OtfLoad
  /** Number of ranks that torchrun starts; 0: without torchrun. */
  torchrunRanks: number
  /**
   * `pp`: only rank 0 gets requests, and the ranks exchange data (TorchServe's
   * docs/large_model_inference.md).
   */
  requestsToRankZeroOnly: boolean
  /** The worker has threads and an event loop (asyncCommunication), and does not exit by itself. */
  async: boolean
  /** Milliseconds from LOAD to its reply. */
  startupTimeoutMs: number
}

/**
 * Milliseconds from the start of the process until every rank prints `Torch worker started.`
 * (WorkerLifeCycle.java).
 */
const START_LIMIT_MS = 120_000
/**
 * Milliseconds that a worker has to exit after its connection ended; torchrun checks its ranks every few
 * seconds.
 */
const LEAVE_LIMIT_MS = 1000
const TORCHRUN_LEAVE_LIMIT_MS = 10_000
/** Milliseconds between two checks that the main thread of an async worker is alive. */
const PROBE_MS = 1000

/** A TorchServe worker: one Python process, or several that torchrun starts, with a connection to each. */
export class PythonGroup implements WorkerGroup {
  readonly finishingRanks = 1
  readonly isNative = false
  readonly takesBatchesAhead = false
  /** TorchServe's workers have only `handle`. */
  readonly methods = ['handle'] as const
  readonly #options: PythonGroupOptions
  readonly #events: WorkerGroupEvents
  readonly #session: PythonSession
  #process: PythonProcess | undefined
  #connections: Connection[] = []
  #socketPaths: readonly string[] = []
  /** The end of the group was requested, or is already known. */
  #leaving = false
  #killed = false
  #probe: NodeJS.Timeout | undefined

  constructor(options: PythonGroupOptions, events: WorkerGroupEvents) {
    this.#options = options
    this.#events = events
    this.#session = new PythonSession(
      options,
      {
        write: (frame) => {
          this.#write(frame)
        },
        listen: (on) => {
          this.#connections[0]?.listen(on)
        },
      },
      events,
    )
  }

  get pid(): number {
    return this.pids[0] ?? -1
  }

  get pids(): readonly number[] {
    return this.#process?.pids ?? []
  }

  async load(): Promise<void> {
    const launch = await this.#launch()
    if (this.#leaving || this.#killed) throw new ServeError('WORKER_START_FAILED', 'The worker was stopped')
    const started = this.#start(launch)
    await withinTime(started, START_LIMIT_MS, `The worker did not start within ${START_LIMIT_MS / 1000} s`)
    this.#connections = launch.socketPaths.map((path) => this.#connect(path))
    await Promise.all(this.#connections.map((connection) => connection.connected))
    this.#events.onConnected()
    const ms = this.#options.startupTimeoutMs
    const message = `The worker was not loaded within ${ms / 1000} s (startupTimeout)`
    await withinTime(this.#loadRanks(), ms, message)
    this.#connections[0]!.answerTo(this.#session)
    if (this.#options.async) this.#watchMainThread()
  }

  send(message: RankMessage | FirstRankMessage): void {
    this.#session.send(message)
  }

  get unsentBytes(): number {
    return this.#connections.reduce((bytes, connection) => bytes + connection.unsentBytes, 0)
  }

  sendToFirst(message: FirstRankMessage): void {
    this.#session.send(message)
  }

  async stop(graceMs: number): Promise<boolean> {
    this.#leaving = true
    let killed = false
    const timer = startTimer(() => {
      killed = true
      this.kill()
    }, graceMs)
    await Promise.race([this.#session.unwanted(), this.exited()])
    const limit = this.#disconnect()
    await this.exited()
    clearTimeout(timer)
    clearTimeout(limit)
    return !killed
  }

  kill(): void {
    this.#killed = true
    this.#process?.kill()
  }

  async exited(): Promise<void> {
    await this.#process?.exited
  }

  async #launch(): Promise<PythonLaunch> {
    try {
      return await this.#options.launch()
    } catch (error) {
      this.#options.cleanUp()
      throw error
    }
  }

  #start({ commandLine, socketPaths }: PythonLaunch): Promise<void> {
    this.#socketPaths = socketPaths
    const { load, torchrunRanks } = this.#options
    this.#process = new PythonProcess(commandLine, load, torchrunRanks, {
      onLine: (stream, line) => {
        this.#events.onOutput(stream, line, '')
      },
      onExit: (cause) => {
        this.#exit(cause)
      },
    })
    return this.#process.started
  }

  #connect(socketPath: string): Connection {
    return new Connection(socketPath, this.#options.maxResponseBytes, {
      onClose: (fault) => {
        if (this.#leaving) return
        this.#process!.fault = fault
        if (fault === undefined) this.#process!.endSoon()
        else this.#process!.kill()
      },
    })
  }

  /** The first rank that fails to load fails the worker. */
  async #loadRanks(): Promise<void> {
    const frame = encodeLoad(this.#options.load)
    let refusal: LoadReply | undefined
    const died = this.#process!.exited.then((cause) => {
      const { raised } = this.#process!
      throw refusal === undefined ? startError(cause, raised) : loadError(refusal, cause, raised)
    })
    const loaded = this.#connections.map(async (connection) => {
      const reply = await connection.load(frame)
      if (reply.code === 200) return
      // It has written the reason to its log, and exits.
      refusal ??= reply
      this.#process!.endSoon()
      await died
    })
    await Promise.race([Promise.all(loaded), died])
    this.#process!.loaded()
  }

  #write(frame: Buffer): void {
    if (this.#options.requestsToRankZeroOnly) this.#connections[0]!.write(frame)
    else for (const connection of this.#connections) connection.write(frame)
  }

  /** Ranks exit when their connection ends. One that still works on something is killed. */
  #disconnect(): NodeJS.Timeout | undefined {
    const connected = this.#connections.length > 0
    for (const connection of this.#connections) connection.close()
    if (!connected || this.#options.async) this.#process?.terminate()
    const limit = this.#options.torchrunRanks > 0 ? TORCHRUN_LEAVE_LIMIT_MS : LEAVE_LIMIT_MS
    return startTimer(() => this.#process?.kill(), limit)
  }

  /**
   * An async worker whose handler calls sys.exit, or whose threads fail, stays as a process without a main
   * thread, with an open connection on which it never answers. The only visible sign is that the main thread
   * removes the socket file at its end.
   */
  #watchMainThread(): void {
    this.#probe = setInterval(() => {
      if (existsSync(this.#socketPaths[0]!)) return
      clearInterval(this.#probe)
      this.#process!.fault = new ServeError('WORKER_LOST', 'The main thread of the worker has ended')
      this.#process!.kill()
    }, PROBE_MS)
    this.#probe.unref()
  }

  #exit(cause: ExitCause): void {
    clearInterval(this.#probe)
    for (const connection of this.#connections) connection.close()
    this.#options.cleanUp()
    if (this.#leaving) return
    this.#leaving = true
    this.#events.onDeath(cause)
  }
}
