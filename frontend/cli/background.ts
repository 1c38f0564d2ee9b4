import { spawn, type ChildProcess } from 'node:child_process'
import { closeSync, fstatSync, openSync, readlinkSync } from 'node:fs'
import { setImmediate as turn } from 'node:timers/promises'
import { tellFailure } from './describe-failure.ts'
import type { Output } from './output.ts'
import { tempDirOf } from './pid-file.ts'
import { printFailure, isStartReport, type StartReport } from './reporters.ts'
import { checkNotRunning } from './servers.ts'
import { startTimer } from '../../common/timer.ts'

/**
 * Marks the background server's process, and says how long it has its stdout; removed from its environment
 * before anything else starts.
 */
const MARK = 'TORCHSERVE_TS_BACKGROUND'
/** Time for the process to start and read its settings; its first report then sets the further limit. */
const FIRST_REPORT_MS = 60_000
const KILL_AFTER_MS = 5_000

/** How long a server in the background writes to stdout. */
export type BackgroundConsole = 'always' | 'until started'

/** Of a process that was started to serve in the background; else undefined. Only the first call says so. */
export function takeBackgroundMark(env: NodeJS.ProcessEnv): BackgroundConsole | undefined {
  const mark = process.send === undefined ? undefined : env[MARK]
  Reflect.deleteProperty(env, MARK)
  return mark as BackgroundConsole | undefined
}

/**
 * Whether the server keeps an output of this command, as in TorchServe: in a container that is the
 * container's log, and the entry point that calls this command has it too. A pipe that only this command has
 * is read to its end, as by `| tail` and `$(...)`: the server leaves it. In a terminal the pipe is never the
 * log of a service, whoever has it (npx, a script).
 */
function keepsOutput(fd: 1 | 2, env: NodeJS.ProcessEnv): boolean {
  const stats = fstatSync(fd)
  if (!stats.isFIFO() && !stats.isSocket()) return true
  // systemd says so of its journal (man 5 systemd.exec).
  if (env['JOURNAL_STREAM'] === `${stats.dev}:${stats.ino}`) return true
  return !hasTerminal() && callerHas(fd)
}

function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return true
  } catch {
    return false
  }
}

/** A caller of another user may have it: so it does. */
function callerHas(fd: 1 | 2): boolean {
  try {
    const place = readlinkSync(`/proc/self/fd/${fd}`)
    return [1, 2].some((each) => readlinkSync(`/proc/${process.ppid}/fd/${each}`) === place)
  } catch {
    return true
  }
}

/**
 * Starts this program again in a session of its own, and waits until it serves or fails.
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
  /** Its last report has come, and is being shown. */
  #reported = false
  /** Why the start was aborted; the child's exit is awaited then. */
  #calledOff: string | undefined

  constructor(argv: readonly string[], output: Output, env: NodeJS.ProcessEnv) {
    this.#output = output
    this.#status = new Promise((finish) => {
      this.#finish = finish
    })
    const [out, err] = ([1, 2] as const).map((fd) => (keepsOutput(fd, env) ? 'inherit' : 'pipe'))
    const mark: BackgroundConsole = out === 'inherit' ? 'always' : 'until started'
    this.#child = spawn(process.execPath, [...process.execArgv, process.argv[1]!, ...argv], {
      detached: true,
      env: { ...env, [MARK]: mark },
      stdio: ['ignore', out, err, 'ipc'],
    })
    this.#child.stdout?.pipe(process.stdout, { end: false })
    this.#child.stderr?.pipe(process.stderr, { end: false })
  }

  async wait(): Promise<number> {
    this.#child.once('error', (error) => this.#failed(error.message))
    this.#child.once('close', (code, signal) => {
      // Its last report may still be in transit.
      if (this.#child.connected) this.#child.once('disconnect', () => this.#died(code, signal))
      else this.#died(code, signal)
    })
    this.#child.on('message', (message) => {
      if (isStartReport(message) && this.#calledOff === undefined) void this.#onReport(message)
    })
    process.on('SIGINT', this.#onInterrupt).on('SIGTERM', this.#onInterrupt)
    this.#limit(FIRST_REPORT_MS)
    try {
      return await this.#status
    } finally {
      this.#letGo()
    }
  }

  async #onReport(report: StartReport): Promise<void> {
    if (report.type === 'starting') {
      this.#limit(report.limitMs)
      return
    }
    this.#reported = true
    // What the server wrote before the report is there: this turn or the next one reads it.
    await turn()
    await turn()
    if (report.type === 'failed') {
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
    if (this.#reported) return
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
    this.#child.stdout?.destroy()
    this.#child.stderr?.destroy()
    if (this.#child.connected) this.#child.disconnect()
    this.#child.unref()
  }
}
