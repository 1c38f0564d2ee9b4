import { spawn, type ChildProcess } from 'node:child_process'
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describeFailure } from './describe-failure.ts'
import type { CliFlags } from './flags.ts'
import type { Output } from './output.ts'
import { checkNotRunning, pidFilePath, tempDirOf } from './pid-file.ts'
import { printFailure } from './reporters.ts'
import { isStartReport, type StartReport } from './start-report.ts'

/** Marks the background server's process; removed from its environment before anything else starts. */
const MARK = 'TORCHSERVE_TS_BACKGROUND'
/** Written by the server itself. */
const LOG_FILE_NAME = 'ts_log.log'
/**
 * Output of the process beside its log, such as Node's crash messages. A separate file, because the log is
 * rolled.
 */
const CONSOLE_FILE_NAME = 'ts_console.log'
/** Time for the process to start and read its settings; its first report then sets the further limit. */
const FIRST_REPORT_MS = 60_000
const LAST_LINES = 15
const KILL_AFTER_MS = 5_000

/** Whether this process was started to serve in the background. Returns true only once. */
export function takeBackgroundMark(env: NodeJS.ProcessEnv): boolean {
  const marked = env[MARK] !== undefined && process.send !== undefined
  Reflect.deleteProperty(env, MARK)
  return marked
}

/**
 * Starts this program again, detached from the terminal, with its output in ts_console.log, and waits until
 * it serves or fails.
 * @returns the exit status
 */
export async function startInBackground(
  argv: readonly string[],
  flags: CliFlags,
  output: Output,
  env: NodeJS.ProcessEnv,
): Promise<number> {
  try {
    checkNotRunning(pidFilePath(tempDirOf(env)))
    const logs = openLogs(await logFolder(flags, env))
    return await new BackgroundStart(argv, logs, output, env).wait()
  } catch (error) {
    output.err(`torchserve-ts: ${describeFailure(error)}`)
    return 1
  }
}

interface Logs {
  /** ts_log.log */
  path: string
  /** Offset of this start's first byte. */
  offset: number
  consolePath: string
  consoleFd: number
}

class BackgroundStart {
  readonly #logs: Logs
  readonly #output: Output
  readonly #child: ChildProcess
  readonly #status: Promise<number>
  #finish!: (status: number) => void
  #timer: NodeJS.Timeout | undefined
  /** Why the start was aborted; the child's exit is awaited then. */
  #calledOff: string | undefined

  constructor(argv: readonly string[], logs: Logs, output: Output, env: NodeJS.ProcessEnv) {
    this.#logs = logs
    this.#output = output
    this.#status = new Promise((finish) => {
      this.#finish = finish
    })
    this.#child = spawn(process.execPath, [...process.execArgv, process.argv[1]!, ...argv], {
      detached: true,
      env: { ...env, [MARK]: '1' },
      stdio: ['ignore', logs.consoleFd, logs.consoleFd, 'ipc'],
    })
    closeSync(logs.consoleFd)
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
      for (const warning of report.warnings) this.#output.err(`Warning: ${warning}`)
      this.#output.out(`The log is ${this.#logs.path}`)
      for (const line of report.lines) this.#output.out(line)
      this.#finish(0)
    }
  }

  #limit(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.#callOff(`the server did not start within ${ms / 1000} s; see ${this.#logs.path}`)
    }, ms)
  }

  #died(code: number | null, signal: NodeJS.Signals | null): void {
    if (this.#calledOff !== undefined) {
      this.#failed(this.#calledOff)
      return
    }
    const how = signal === null ? `status ${code}` : `signal ${signal}`
    const lines = lastLines(this.#logs)
    this.#failed(`the server ended during its start (${how})${lines === '' ? '' : ':'}`)
    if (lines !== '') this.#output.err(lines)
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

/**
 * Folder of the log files. Computed before the settings are read, because the child's output needs a place by
 * then.
 */
async function logFolder(flags: CliFlags, env: NodeJS.ProcessEnv): Promise<string> {
  let location = env['LOG_LOCATION']?.trim()
  if (flags.logConfig !== undefined) {
    const { readLogConfig } = await import('../config/log-config.ts')
    const entries = await readLogConfig(flags.logConfig, [])
    location = entries.find(({ name }) => name === 'LOG_LOCATION')?.text ?? location
  }
  return resolve(location === undefined || location === '' ? 'logs' : location)
}

function openLogs(folder: string): Logs {
  mkdirSync(folder, { recursive: true })
  const path = join(folder, LOG_FILE_NAME)
  const consolePath = join(folder, CONSOLE_FILE_NAME)
  const offset = existsSync(path) ? statSync(path).size : 0
  return { path, offset, consolePath, consoleFd: openSync(consolePath, 'w', 0o640) }
}

/** The last lines of this start in its logs. */
function lastLines({ path, offset, consolePath }: Logs): string {
  const log = existsSync(path) ? readFileSync(path).subarray(offset).toString('utf8') : ''
  const text = log + readFileSync(consolePath, 'utf8')
  return text.trimEnd().split('\n').slice(-LAST_LINES).join('\n')
}
