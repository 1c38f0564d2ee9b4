import { resolve } from 'node:path'
import { KEY_FILE_NAME } from '../auth/token-store.ts'
import { checkExposure } from '../config/exposure.ts'
import { checkStores, loadSettings, makeAgentsStore, type StartSettings } from '../config/load-settings.ts'
import { shownSettings } from '../config/build-settings.ts'
import { SnapshotStore } from '../config/snapshot-store.ts'
import type { Settings } from '../config/settings.ts'
import { createLogger, type ServerLog } from '../observe/logs/logger.ts'
import { ConsoleWriter } from '../observe/logs/console-writer.ts'
import {
  endLogFiles,
  openLogFiles,
  reopenLogFiles,
  withConsole,
  type LogFiles,
  type Logs,
} from '../observe/logs/log-files.ts'
import type { RunningServer, StartServer } from '../server-api.ts'
import { describeFailure, failureDetail, machineHint } from './describe-failure.ts'
import type { CliFlags } from './flags.ts'
import { ServerEntry, type Claim } from './server-entry.ts'
import { PROCESS_TITLE } from './pid-file.ts'
import { ServiceManager } from './service-manager.ts'
import { namedConfig } from './servers.ts'
import { type StartReporter, parentReporter, terminalReporter } from './reporters.ts'
import { aborted, statusAfter, watchStopSignals, watchUserSignals } from './stop-signals.ts'
import type { BackgroundConsole } from './background.ts'
import { type Output, printed } from './output.ts'

/** Added to the drain timeout and the cancel grace, for closing listeners, workers and files. */
const STOP_MARGIN_MS = 10_000
/** Added to the models' startup timeout, for unpacking archives and opening listeners. */
const START_MARGIN_MS = 60_000

/** How this process serves. */
export interface Serving {
  readonly loaded: StartSettings
  /** Whether the start fails when a model does not load. */
  readonly waits: boolean
  /** Whether the models are written to snapshots. */
  readonly keepsSnapshots: boolean
  /** What no second server may have: the working folder with its logs and keys, or nothing. */
  readonly claims: Claim
  /** Absolute path of the configuration file that the user named. */
  readonly config?: string
  /** The flag that chose the port of REST. */
  readonly portFlag?: string
  /** What the terminal says of the started server. Default: TorchServe's lines. */
  readonly announce?: (server: RunningServer) => Promise<string[]>
}

/** As the flags say it. @throws ServeError CONFIG */
export async function servingFromFlags(flags: CliFlags): Promise<Serving> {
  const loaded = await loadSettings(flags)
  await checkStores(loaded)
  await checkExposure(loaded.settings)
  const keepsSnapshots = flags.configSnapshots !== false
  const config = namedConfig(flags.tsConfig, process.env)
  return {
    loaded,
    waits: flags.wait === true,
    keepsSnapshots,
    claims: 'folder',
    ...(config !== undefined && { config }),
  }
}

/**
 * Serves in this process until it is told to stop. Logs to files, and to `console`, which its owner ends.
 * @returns the exit status
 */
export async function serve(
  prepare: () => Promise<Serving>,
  loadServer: () => Promise<StartServer>,
  reporter: StartReporter,
  console: ConsoleWriter,
): Promise<number> {
  let settings: Settings | undefined
  try {
    const serving = await prepare()
    settings = serving.loaded.settings
    await reporter.tell({ type: 'starting', limitMs: startLimit(settings) })
    return await new ServingProcess(serving, reporter, console).run(loadServer)
  } catch (error) {
    const detail = settings?.logLevel === 'debug' ? failureDetail(error) : undefined
    const folders =
      settings === undefined
        ? []
        : [`${settings.tempDir} (TEMP)`, `${resolve(settings.logLocation)} (LOG_LOCATION)`]
    const message = describeFailure(error) + machineHint(error, folders)
    await console.started()
    await reporter.tell({ type: 'failed', message, detail })
    return 1
  }
}

class ServingProcess {
  readonly #serving: Serving
  readonly #reporter: StartReporter
  readonly #console: ConsoleWriter
  readonly #log: ServerLog
  #logFiles: LogFiles = {}
  #logs: Logs = {}
  #server: RunningServer | undefined
  #entry: ServerEntry | undefined

  constructor(serving: Serving, reporter: StartReporter, console: ConsoleWriter) {
    this.#serving = serving
    this.#reporter = reporter
    this.#console = console
    const { logLevel, logFormat, logConsole } = serving.loaded.settings
    this.#log = createLogger({ level: logLevel, format: logFormat, console, onConsole: logConsole })
  }

  /** @returns the exit status. @throws errors of the start */
  async run(loadServer: () => Promise<StartServer>): Promise<number> {
    const { loaded, waits, keepsSnapshots, claims, config } = this.#serving
    const { settings } = loaded
    process.title = PROCESS_TITLE
    // Watched before the entry tells others whom to signal.
    const stop = watchStopSignals((status) => {
      const requests = this.#server?.openRequests
      const what = requests === undefined ? 'the start' : `running requests (${requests})`
      this.#log.log.warn(`Stopped by a second signal, without waiting for ${what}`)
      this.#endNow(status)
    })
    const unwatch = watchUserSignals(() => {
      reopenLogFiles(this.#logFiles)
      this.#log.log.info('The log files are opened again (SIGUSR1)')
    })
    process.on('uncaughtException', this.#onCrash)
    const manager = new ServiceManager(process.env, (line) => this.#log.log.warn(line))
    let hasStarted = false
    try {
      const stopMs = stopLimit(settings)
      this.#entry = new ServerEntry(settings.tempDir, {
        stopMs,
        claims,
        warn: (line) => this.#log.log.warn(line),
        ...(config !== undefined && { config }),
      })
      this.#openLogFiles()
      const made = await makeAgentsStore(loaded)
      if (made !== undefined) this.#log.log.info(made)
      const startServer = await loadServer()
      stop.signal.throwIfAborted()
      this.#server = await startServer(settings, {
        log: this.#log.log,
        configuration: () => shownSettings(loaded),
        logFiles: this.#logs,
        console: this.#console,
        logTail: this.#log.tail,
        signal: stop.signal,
        waitForModels: waits,
        snapshots: keepsSnapshots ? new SnapshotStore(loaded) : undefined,
        portFlag: this.#serving.portFlag,
        snapshotHint: loaded.modelSource.hint,
      })
      await this.#entry.tell(this.#server)
      await this.#announce(this.#server)
      hasStarted = true
      manager.ready()
      await aborted(stop.signal)
      manager.stopping()
      this.#entry.markStopping()
      this.#sayStopping(this.#server.openRequests, settings.drainTimeout)
      await this.#server.close()
      this.#log.log.info('Stopped')
      return statusAfter(stop.signal)
    } catch (error) {
      if (stop.signal.aborted && !hasStarted) return statusAfter(stop.signal) // a signal aborted the start
      // The console has it from the reporter.
      this.#log.fileLog.error(`The ${hasStarted ? 'stop' : 'start'} failed: ${describeFailure(error)}`)
      throw error
    } finally {
      manager.close()
      this.#entry?.remove()
      process.off('uncaughtException', this.#onCrash)
      stop.unwatch()
      unwatch()
      this.#log.end()
      await endLogFiles(this.#logFiles)
    }
  }

  #sayStopping(requests: number, drainTimeout: number): void {
    const rest = `within ${drainTimeout} s (drain_timeout); a second signal stops at once`
    const line = `Stopping when ${requestsText(requests)}, ${rest}`
    this.#log.log.info(line)
    // A command with a quiet log says it itself.
    if (this.#serving.announce !== undefined && !this.#log.log.isLevelEnabled('info'))
      this.#console.write(requests === 0 ? 'Stopping\n' : `${line}\n`)
  }

  /** Called after the entry was made: only one server may write the log files. */
  #openLogFiles(): void {
    this.#logFiles = openLogFiles(this.#serving.loaded.settings, (message) => this.#log.log.warn(message))
    this.#log.addFiles(this.#logFiles)
    this.#logs = withConsole(this.#logFiles, this.#serving.loaded.settings, this.#console)
    this.#console.warn = (message) => this.#log.log.warn(message)
  }

  async #announce(server: RunningServer): Promise<void> {
    const { loaded, announce } = this.#serving
    const { settings, modelSource } = loaded
    for (const warning of [...loaded.warnings, ...server.warnings]) this.#log.log.warn(warning)
    if (announce !== undefined) {
      await this.#reporter.tell({ type: 'started', lines: await announce(server) })
      return
    }
    const lines = server.listening.map(({ name, address }) => `${name} listens on ${address}`)
    if (!settings.disableTokenAuthorization) {
      lines.push(
        `Requests need a token: see ${KEY_FILE_NAME} in ${process.cwd()}; send it as -H 'Authorization: Bearer <key>'`,
      )
    }
    if (server.consoleUrl !== undefined) lines.push(`The console is at ${server.consoleUrl}`)
    if (this.#logFiles.ts_log !== undefined) {
      const where = this.#console.untilStarted ? 'goes on in' : 'is also in'
      lines.push(`The log ${where} ${resolve(settings.logLocation, 'ts_log.log')}`)
    }
    lines.push(modelSource.line, 'Model server started.')
    for (const line of lines) this.#log.fileLog.info(line)
    await this.#console.started()
    await this.#reporter.tell({ type: 'started', lines })
  }

  /** The state is unknown after an uncaught error: kill the processes, remove the files, exit. */
  readonly #onCrash = (error: Error): void => {
    this.#log.log.fatal({ err: error }, 'The server ends because of an internal error')
    this.#endNow(1)
  }

  #endNow(status: number): void {
    void this.#server?.kill()
    this.#entry?.remove()
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

function requestsText(requests: number): string {
  if (requests === 0) return 'no request runs'
  return requests === 1 ? '1 running request has ended' : `${requests} running requests have ended`
}

/**
 * Serves in this process, with its log on stdout.
 * @param background how long it writes to stdout, if another process waits for the start
 * @returns the exit status
 */
export async function serveOnConsole(
  prepare: () => Promise<Serving>,
  loadServer: () => Promise<StartServer>,
  background?: BackgroundConsole,
): Promise<number> {
  const stdout = new ConsoleWriter(1, background === 'until started')
  const stderr = new ConsoleWriter(2)
  const lines: Output = {
    out: (line) => stdout.write(printed(line)),
    err: (line) => stderr.write(printed(line)),
  }
  const reporter = background === undefined ? terminalReporter(lines) : parentReporter(lines)
  const status = await serve(prepare, loadServer, reporter, stdout)
  await Promise.all([stdout.end(), stderr.end()])
  return status
}
