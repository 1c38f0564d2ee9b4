import { spawn, type ChildProcess } from 'node:child_process'
import { tellFailure } from './describe-failure.ts'
import type { Output } from './output.ts'
import { tempDirOf } from './pid-file.ts'
import { printFailure } from './reporters.ts'
import { checkNotRunning } from './servers.ts'
import { isStartReport, type StartReport } from './start-report.ts'
import { startTimer } from '../../common/timer.ts'

/** Marks the background server's process; removed from its environment before anything else starts. */
const MARK = 'TORCHSERVE_TS_BACKGROUND'
/** Time for the process to start and read its settings; its first report then sets the further limit. */
const FIRST_REPORT_MS = 60_000
const KILL_AFTER_MS = 5_000

/** Whether this process was started to serve in the background. Returns true only once. */
export function takeBackgroundMark(env: NodeJS.ProcessEnv): boolean {
  const marked = env[MARK] !== undefined && process.send !== undefined
  Reflect.deleteProperty(env, MARK)
  return marked
}

/**
 * Starts this program again in a session of its own, and waits until it serves or fails. As in TorchServe,
 * the server keeps the stdout and stderr of this command: in a container they are the container's log.
 * @returns the exit status
 */
export async function startInBackground(
  argv: readonly string[],
  output: Output,
  env: NodeJS.ProcessEnv,
): Promise<number> {
  try {
    checkNotRunning(tempDirOf(env))
    return await new BackgroundStart(argv, output, env).wait()
  } catch (error) {
    return tellFailure(error, output)
  }
}

class BackgroundStart {
  readonly #output: Output
  readonly #child: ChildProcess
  readonly #status: Promise<number>
  #finish!: (status: number) => void
  #timer: NodeJS.Timeout | undefined
  /** Why the start was aborted; the child's exit is awaited then. */
  #calledOff: string | undefined

  constructor(argv: readonly string[], output: Output, env: NodeJS.ProcessEnv) {
    this.#output = output
    this.#status = new Promise((finish) => {
      this.#finish = finish
    })
    this.#child = spawn(process.execPath, [...process.execArgv, process.argv[1]!, ...argv], {
      detached: true,
      env: { ...env, [MARK]: '1' },
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
  }

  async wait(): Promise<number> {
    this.#child.once('error', (error) => this.#failed(error.message))
    this.#child.once('exit', (code, signal) => {
      // Its last report may still be in transit.
      if (this.#child.connected) this.#child.once('disconnect', () => this.#died(code, signal))
      else this.#died(code, signal)
    })
    this.#child.on('message', (message) => {
      if (isStartReport(message) && this.#calledOff === undefined) this.#onReport(message)
    })
    process.on('SIGINT', this.#onInterrupt).on('SIGTERM', this.#onInterrupt)
    this.#limit(FIRST_REPORT_MS)
    try {
      return await this.#status
    } finally {
      this.#letGo()
    }
  }

  #onReport(report: StartReport): void {
    if (report.type === 'starting') {
      this.#limit(report.limitMs)
    } else if (report.type === 'failed') {
      printFailure(report, this.#output)
      this.#finish(1)
    } else {
      for (const line of report.lines) this.#output.out(line)
      this.#finish(0)
    }
  }

  #limit(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = startTimer(() => {
      this.#callOff(`the server did not start within ${ms / 1000} s`)
    }, ms)
  }

  #died(code: number | null, signal: NodeJS.Signals | null): void {
    if (this.#calledOff !== undefined) {
      this.#failed(this.#calledOff)
      return
    }
    const how = signal === null ? `status ${code}` : `signal ${signal}`
    this.#failed(`the server ended during its start (${how})`)
  }

  #failed(message: string): void {
    this.#output.err(`torchserve-ts: ${message}`)
    this.#finish(1)
  }

  readonly #onInterrupt = (): void => {
    this.#callOff('the start was interrupted')
  }

  /** Stops the child with SIGTERM, then kills its process group if that has no effect. */
  #callOff(reason: string): void {
    this.#calledOff ??= reason
    const { pid } = this.#child
    if (pid === undefined) return
    this.#child.kill('SIGTERM')
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => process.kill(-pid, 'SIGKILL'), KILL_AFTER_MS)
  }

  #letGo(): void {
    clearTimeout(this.#timer)
    process.off('SIGINT', this.#onInterrupt).off('SIGTERM', this.#onInterrupt)
    this.#child.removeAllListeners()
    if (this.#child.connected) this.#child.disconnect()
    this.#child.unref()
  }
}
