import { existsSync } from 'node:fs'
import type { ServeError } from '../../common/errors.ts'
import { startProgram, type StartedProgram } from '../../common/start-program.ts'
import { startTimer } from '../../common/timer.ts'
import { isMetricLine } from '../observe/metrics/metric-line.ts'
import { describeExit, type ExitCause } from './exit-cause.ts'
import { readLines } from './read-lines.ts'
import { MARK, orphanGuard } from './orphan-guard.ts'
import { killGroup, killSession, workersBelow } from './processes.ts'
import type { WorkerOutput } from './worker-state.ts'

export interface CommandLine {
  /** A path, or a name on PATH. */
  readonly command: string
  readonly args: readonly string[]
  /** The complete environment. */
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  /** The arguments of the worker itself, with which `args` end: its process is found by them. */
  readonly workerArgs: readonly string[]
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
 * in a terminal does not reach it. What it started ends with it, and with the server: its process group, and
 * what has its mark in the environment (docs/worker-wrapper.md).
 */
export class WorkerProcess {
  readonly #child: StartedProgram['child']
  readonly #cwd: string
  readonly #workerArgs: readonly string[]
  readonly #mark = orphanGuard.newMark()
  readonly #kept: string[] = []
  /** V8 said so, above a stack that is longer than what is kept. */
  #heapIsFull = false
  readonly #events: ProcessEvents
  #found: readonly number[] | undefined
  #killed = false
  #ended = false
  #reaped: Promise<void> | undefined
  /** Why the server is about to end it. */
  fault: ServeError | undefined
  /** Resolves when the process and what it started have ended. */
  readonly exited: Promise<ExitCause>

  /** @param explains the outputs that can explain why a process died */
  constructor(
    { command, args, env, cwd, workerArgs }: CommandLine,
    events: ProcessEvents,
    explains: readonly WorkerOutput[] = ['stderr'],
  ) {
    this.#events = events
    this.#workerArgs = workerArgs
    this.#cwd = cwd
    // stdin stays open: a Node.js worker exits when stdin ends, so none survives its frontend.
    const options = { env: { ...env, [MARK]: this.#mark }, cwd, stdio: 'pipe', detached: true } as const
    const { child, ended } = startProgram(command, args, options)
    this.#child = child
    child?.stdin?.on('error', () => undefined)
    orphanGuard.add(this.#leader)
    for (const stream of ['stdout', 'stderr'] as const) {
      const keep = explains.includes(stream)
      const output = child?.[stream]
      if (!output) continue
      readLines(output, (line) => {
        this.#heapIsFull ||= keep && line.includes('heap out of memory')
        if (keep && !isMetricLine(line) && this.#kept.push(line) > KEPT_LINES) this.#kept.shift()
        events.onLine(stream, line)
      })
    }
    this.exited = this.#watch(ended)
    child?.once('exit', () => {
      this.#ended = true
      this.#endRest()
      this.#letPipesGo()
    })
  }

  /**
   * The processes that run the worker, several below torchrun. Until they run it is the one that starts them.
   * -1: it could not be started.
   */
  get pids(): readonly number[] {
    const found = workersBelow(this.#leader, this.#workerArgs)
    if (found.length > 0) this.#found = found
    return this.#found ?? [this.#leader]
  }

  /** The first of them. */
  get pid(): number {
    return this.pids[0]!
  }

  kill(signal: 'SIGTERM' | 'SIGKILL'): void {
    this.#killed ||= signal === 'SIGKILL'
    this.#child?.kill(signal)
    if (signal === 'SIGKILL' && !this.#ended) killSession(this.#leader)
  }

  get #leader(): number {
    return this.#child?.pid ?? -1
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
    const letGo = (): void => {
      this.#child?.stdout?.destroy()
      this.#child?.stderr?.destroy()
    }
    // On a busy machine the timer may be due before what has come meanwhile is read.
    const timer = setTimeout(() => setImmediate(letGo), EXIT_LAG_MS)
    void this.exited.then(() => {
      clearTimeout(timer)
    })
  }

  /** The worker is gone, so its children are killed. Its own pid may already belong to another process. */
  #endRest(): void {
    killGroup(this.#leader)
    this.#reaped = orphanGuard.reap(this.#mark)
    orphanGuard.remove(this.#leader)
  }

  async #watch(ended: StartedProgram['ended']): Promise<ExitCause> {
    const { exitCode, signal, failure } = await ended
    const cause = describeExit({
      exitCode,
      signal,
      killed: this.#killed,
      // Node says of a missing folder that the program is missing.
      spawnError: failure && !existsSync(this.#cwd) ? withoutFolder(this.#cwd, failure) : failure,
      stderr: this.#kept,
      heapIsFull: this.#heapIsFull,
      fault: this.fault,
    })
    this.#events.onExit(cause)
    await this.#reaped
    return cause
  }
}

/** What removes old temporary files may have taken the unpacked model. */
function withoutFolder(cwd: string, cause: Error): Error {
  return new Error(`the folder ${cwd} is gone; load the model again`, { cause })
}
