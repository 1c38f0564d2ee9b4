import { resolve } from 'node:path'
import { KEY_FILE_NAME } from '../auth/token-store.ts'
import { checkExposure } from '../config/exposure.ts'
import { checkStores, loadSettings, type StartSettings } from '../config/load-settings.ts'
import { SnapshotStore } from '../config/snapshot-store.ts'
import type { Settings } from '../config/settings.ts'
import { createLogger, type ServerLog } from '../observe/logs/logger.ts'
import type { ConsoleWriter } from '../observe/logs/console-writer.ts'
import { endLogFiles, openLogFiles, type LogFiles } from '../observe/logs/log-files.ts'
import type { RunningServer, StartServer } from '../server-api.ts'
import { describeFailure, failureDetail } from './describe-failure.ts'
import type { CliFlags } from './flags.ts'
import { claimPidFile, pidFilePath } from './pid-file.ts'
import { PROCESS_TITLE } from './server-process.ts'
import type { StartReporter } from './start-report.ts'
import { aborted, watchStopSignals } from './stop-signals.ts'

/** Added to the drain timeout and the cancel grace, for closing listeners, workers and files. */
const STOP_MARGIN_MS = 10_000
/** Added to the models' startup timeout, for unpacking archives and opening listeners. */
const START_MARGIN_MS = 60_000

/**
 * Serves in this process until it is told to stop. Logs to files, and to `console`, which its owner ends.
 * @returns the exit status
 */
export async function serve(
  flags: CliFlags,
  loadServer: () => Promise<StartServer>,
  reporter: StartReporter,
  console: ConsoleWriter,
): Promise<number> {
  let debug = false
  try {
    const loaded = await loadSettings(flags)
    debug = loaded.settings.logLevel === 'debug'
    await checkStores(loaded.settings)
    await checkExposure(loaded.settings)
    await reporter.tell({ type: 'starting', limitMs: startLimit(loaded.settings) })
    await new ServingProcess(loaded, reporter, console, flags).run(loadServer)
    return 0
  } catch (error) {
    const detail = debug ? failureDetail(error) : undefined
    await reporter.tell({ type: 'failed', message: describeFailure(error), detail })
    return 1
  }
}

class ServingProcess {
  readonly #loaded: StartSettings
  readonly #reporter: StartReporter
  readonly #console: ConsoleWriter
  readonly #waits: boolean
  readonly #snapshots: SnapshotStore | undefined
  readonly #log: ServerLog
  #logFiles: LogFiles = {}
  #server: RunningServer | undefined
  #removePidFile = (): void => undefined

  constructor(loaded: StartSettings, reporter: StartReporter, console: ConsoleWriter, flags: CliFlags) {
    this.#loaded = loaded
    this.#waits = flags.wait === true
    this.#snapshots = flags.configSnapshots === false ? undefined : new SnapshotStore(loaded)
    this.#reporter = reporter
    this.#console = console
    const { logLevel, logFormat } = loaded.settings
    this.#log = createLogger({ level: logLevel, format: logFormat, console })
  }

  /** @throws errors of the start */
  async run(loadServer: () => Promise<StartServer>): Promise<void> {
    const { settings } = this.#loaded
    process.title = PROCESS_TITLE
    // Watched before the pid file tells others whom to signal.
    const stop = watchStopSignals((status) => {
      this.#log.log.warn('Stopped by a second signal, without waiting for running requests')
      this.#endNow(status)
    })
    process.on('uncaughtException', this.#onCrash)
    try {
      this.#removePidFile = claimPidFile(pidFilePath(settings.tempDir), stopLimit(settings))
      this.#openLogFiles()
      const startServer = await loadServer()
      stop.signal.throwIfAborted()
      this.#server = await startServer(settings, {
        log: this.#log.log,
        logFiles: this.#logFiles,
        signal: stop.signal,
        waitForModels: this.#waits,
        snapshots: this.#snapshots,
        snapshotHint: this.#loaded.modelSource.hint,
      })
      await this.#announce(this.#server)
      await aborted(stop.signal)
      const { drainTimeout } = settings
      this.#log.log.info(
        `Stopping after running requests finish, within ${drainTimeout} s (drain_timeout); a second signal stops at once`,
      )
      await this.#server.close()
      this.#log.log.info('Stopped')
    } catch (error) {
      if (!stop.signal.aborted) throw error // otherwise a signal aborted the start
    } finally {
      this.#removePidFile()
      process.off('uncaughtException', this.#onCrash)
      stop.unwatch()
      this.#log.end()
      await endLogFiles(this.#logFiles)
    }
  }

  /** Called after the pid file was claimed: only one server may write the log files. */
  #openLogFiles(): void {
    this.#logFiles = openLogFiles(this.#loaded.settings, (message) => this.#log.log.warn(message))
    this.#log.addFiles(this.#logFiles)
    this.#console.onLoss = (why) =>
      this.#log.log.warn(`Lines for the console are dropped, because ${why}; the server goes on`)
  }

  async #announce(server: RunningServer): Promise<void> {
    const { settings, modelSource } = this.#loaded
    for (const warning of [...this.#loaded.warnings, ...server.warnings]) this.#log.log.warn(warning)
    const lines = server.listening.map(({ name, address }) => `${name} listens on ${address}`)
    if (!settings.disableTokenAuthorization) {
      lines.push(`Requests need a token: see ${KEY_FILE_NAME} in ${process.cwd()}`)
    }
    if (this.#logFiles.ts_log !== undefined) {
      lines.push(`The log is also in ${resolve(settings.logLocation, 'ts_log.log')}`)
    }
    lines.push(modelSource.line, 'Model server started.')
    for (const line of lines) this.#log.fileLog.info(line)
    await this.#reporter.tell({ type: 'started', lines })
  }

  /** The state is unknown after an uncaught error: kill the processes, remove the files, exit. */
  readonly #onCrash = (error: Error): void => {
    this.#log.log.fatal({ err: error }, 'The server ends because of an internal error')
    this.#endNow(1)
  }

  #endNow(status: number): void {
    this.#server?.kill()
    this.#removePidFile()
    process.exit(status)
  }
}

function startLimit(settings: Settings): number {
  const { defaultStartupTimeout, models, installPyDepPerModel, downloadTimeout } = settings
  const own = Object.values(models).flatMap((versions) =>
    Object.values(versions).map(({ startupTimeout }) => startupTimeout ?? 0),
  )
  const install = installPyDepPerModel ? downloadTimeout : 0
  return (Math.max(defaultStartupTimeout, ...own) + install) * 1000 + START_MARGIN_MS
}

function stopLimit({ drainTimeout, cancelGraceMs }: Settings): number {
  return Math.ceil(drainTimeout * 1000) + cancelGraceMs + STOP_MARGIN_MS
}
