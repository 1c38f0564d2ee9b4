import { execa, type ResultPromise } from 'execa'
import type { ServeError } from '../../common/errors.ts'
import { startTimer } from '../../common/timer.ts'
import { isMetricLine } from '../observe/metrics/metric-line.ts'
import { describeExit, type ExitCause } from './exit-cause.ts'
import { readLines } from './read-lines.ts'
import { firstChild, killGroup, killSession } from './kill-session.ts'
import { orphanGuard } from './orphan-guard.ts'
import type { WorkerOutput } from './worker-state.ts'

export interface CommandLine {
  /** A path, or a name on PATH. */
  readonly command: string
  readonly args: readonly string[]
  /** The complete environment. */
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  /**
   * The command is a keeper (libexec/guest.pl): it starts the program as its child, and kills what that
   * leaves behind. Default false: the command is the program.
   */
  readonly kept?: boolean
}

export interface ProcessEvents {
  onLine(stream: WorkerOutput, line: string): void
  /** Called once, when the process has ended for any reason. */
  onExit(cause: ExitCause): void
}

/** Number of output lines that are kept to explain a death. */
const KEPT_LINES = 20
/** Milliseconds that the output and the exit of a process may lag behind its socket. */
const EXIT_LAG_MS = 1000

/**
 * One process of a worker: its output in lines, and how it ended. It has a session of its own, so that Ctrl-C
 * in a terminal does not reach it. Its children end with it: without a keeper those of its process group. It
 * does not survive the server.
 */
export class WorkerProcess {
  readonly #process: ResultPromise<ProcessOptions>
  /** Whether its descendants end with it, wherever they are. */
  readonly kept: boolean
  readonly #kept: string[] = []
  readonly #events: ProcessEvents
  #program: number | undefined
  #killed = false
  #ended = false
  /** Why the server is about to end it. */
  fault: ServeError | undefined
  /** Resolves when the process has ended. */
  readonly exited: Promise<ExitCause>

  /** @param explains the outputs that can explain why a process died */
  constructor(
    { command, args, env, cwd, kept = false }: CommandLine,
    events: ProcessEvents,
    explains: readonly WorkerOutput[] = ['stderr'],
  ) {
    this.#events = events
    this.kept = kept
    this.#process = execa(command, args, processOptions(env, cwd))
    if (!kept) orphanGuard.add(this.#leader)
    for (const stream of ['stdout', 'stderr'] as const) {
      const keep = explains.includes(stream)
      readLines(this.#process[stream], (line) => {
        if (keep && !isMetricLine(line) && this.#kept.push(line) > KEPT_LINES) this.#kept.shift()
        events.onLine(stream, line)
      })
    }
    this.exited = this.#watch()
    this.#process.once('exit', () => {
      this.#ended = true
      this.#endGroup()
      this.#letPipesGo()
    })
  }

  /** The program's, of a keeper until that has started it. -1: it could not be started. */
  get pid(): number {
    if (this.kept) this.#program ??= firstChild(this.#leader)
    return this.#program ?? this.#leader
  }

  kill(signal: 'SIGTERM' | 'SIGKILL'): void {
    this.#killed ||= signal === 'SIGKILL'
    if (this.kept) this.#process.kill(signal === 'SIGKILL' ? 'SIGUSR1' : signal)
    else {
      this.#process.kill(signal)
      if (signal === 'SIGKILL' && !this.#ended) killSession(this.#leader)
    }
  }

  get #leader(): number {
    return this.#process.pid ?? -1
  }

  /**
   * A process without its socket is of no use, so it is killed if it does not exit. @param fault the reason
   * to report then
   */
  endSoon(withinMs = EXIT_LAG_MS, fault?: ServeError): void {
    const timer = startTimer(() => {
      this.fault ??= fault
      this.kill('SIGKILL')
    }, withinMs)
    void this.exited.then(() => {
      clearTimeout(timer)
    })
  }

  /** Children of the handler may keep the output pipes open: the worker's end must not wait for them. */
  #letPipesGo(): void {
    const { stdout, stderr } = this.#process
    const letGo = (): void => {
      stdout.destroy()
      stderr.destroy()
    }
    // On a busy machine the timer may be due before what has come meanwhile is read.
    const timer = setTimeout(() => setImmediate(letGo), EXIT_LAG_MS)
    void this.exited.then(() => {
      clearTimeout(timer)
    })
  }

  /** The worker is gone, so its children are killed. Its own pid may already belong to another process. */
  #endGroup(): void {
    killGroup(this.#leader)
    if (!this.kept) orphanGuard.remove(this.#leader)
  }

  async #watch(): Promise<ExitCause> {
    const { exitCode, signal, originalMessage } = await this.#process
    const cause = describeExit({
      exitCode,
      signal,
      killed: this.#killed,
      spawnError: exitCode === undefined && signal === undefined ? originalMessage : undefined,
      stderr: this.#kept,
      fault: this.fault,
    })
    this.#events.onExit(cause)
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
  detached: true
}

/** stdin stays open: a Node.js worker exits when stdin ends, so none survives its frontend. */
function processOptions(env: Readonly<Record<string, string>>, cwd: string): ProcessOptions {
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
    detached: true,
  }
}
