import { dirname } from 'node:path'
import { sweepParts } from '../model-archiver/new-file.ts'
import { claimFolder, sweepFolders } from '../model-archiver/owner-file.ts'
import { sweepWorkspaces } from '../model-archiver/workspace.ts'
import { keepTicksFast, within } from '../common/timer.ts'
import { ServeError } from '../common/errors.ts'
import type { ServerOverview } from '../common/server-events.ts'
import type { LogLevel } from '../protocol/messages.ts'
import { createAuthorizer } from './auth/create-authorizer.ts'
import { limiterOf } from './auth/rate-limiter.ts'
import type { Gatekeeper } from './auth/gatekeeper.ts'
import type { Settings } from './config/settings.ts'
import type { SnapshotKind } from './config/snapshot-store.ts'
import type { Listeners } from './listeners.ts'
import { type Logger, MODEL_LOGGER } from './observe/logs/logger.ts'
import { AccessLog } from './observe/logs/access-log.ts'
import { AuditLog } from './observe/logs/audit-log.ts'
import type { Logs } from './observe/logs/log-files.ts'
import { Metrics } from './observe/metrics/metrics.ts'
import { type MetricsConfig, NO_METRICS, readMetricsConfig } from './observe/metrics/metrics-config.ts'
import { startTracing } from './observe/traces/start.ts'
import type { Tracing } from './observe/traces/tracing.ts'
import { SystemMetrics } from './observe/metrics/system-metrics.ts'
import type { LocatedModel } from './models/located-model.ts'
import { defaultInputBudget, InputBudget, JobIndex } from './jobs/open-jobs.ts'
import type { Model } from './models/model.ts'
import { ModelManager } from './models/manager.ts'
import type { ReplaceableModels } from './models/repository.ts'
import { version } from './package-info.ts'
import { installDependencies } from './workers/python/environment/dependencies.ts'
import type { RunningServer, ServerStatus, StartOptions } from './server-api.ts'
import { Devices, findGpus, type Gpus, gpuUsage } from './workers/gpus.ts'
import { Pool } from './workers/pool.ts'
import { orphanGuard } from './workers/orphan-guard.ts'
import { createSocketDir, type SocketDir } from './workers/worker-folder.ts'
import type { WorkerOutput } from './workers/worker-state.ts'
import { oldestFirst, openRequest } from './watch/moment.ts'
import { Viewers } from './watch/viewers.ts'
import { WorkflowManager } from './workflows/manager.ts'

/** Milliseconds that connections get to close after their last answer. */
const CONNECTION_GRACE_MS = 2000
/** Milliseconds that killed workers get to end, so that the log has what they printed. */
const LAST_WORDS_MS = 3000
/** Milliseconds until a snapshot that could not be written is tried again. */
const SNAPSHOT_RETRY_MS = 5000
/** Open requests that the status names. */
const MAX_TOLD_REQUESTS = 200

/**
 * Builds and starts the server in TorchServe's order: tokens, models, listeners. Does not wait for the
 * workers.
 * @throws ServeError, after stopping everything that was started
 */
export async function startServer(settings: Settings, options: StartOptions): Promise<RunningServer> {
  const [gpus, config, tracing] = await Promise.all([
    findGpus(settings.numberOfGpu),
    metricsConfig(settings, options.log),
    startTracing(process.env, (message) => options.log.warn(message)),
  ])
  const found = { config, gpus, tracing }
  const server = new Server(settings, options, found)
  try {
    await server.start(options)
  } catch (error) {
    // A model that is loaded already may have requests.
    if (options.signal?.aborted === true && server.openRequests > 0) await server.close()
    else await server.kill()
    throw error
  }
  return server
}

/** An invalid file is logged and the server starts without TorchServe's metrics, as in TorchServe. */
async function metricsConfig(settings: Settings, log: Logger): Promise<MetricsConfig> {
  try {
    return await readMetricsConfig(settings.metricsConfig)
  } catch (error) {
    log.error(ServeError.from(error).message)
    return NO_METRICS
  }
}

/** Results of reading files, before the rooms are built. */
interface Found {
  readonly config: MetricsConfig
  /** CUDA's identifiers of the GPUs. */
  readonly gpus: Gpus
  /** Undefined: tracing is off. */
  readonly tracing: Tracing | undefined
}

function unsentBytes(models: readonly Model[]): number {
  return models.reduce((bytes, { workers }) => bytes + workers.unsentBytes, 0)
}

/** Wires the rooms together; the only class that knows all of them. */
class Server implements RunningServer {
  readonly #settings: Settings
  readonly #log: Logger
  readonly #logFiles: Logs
  readonly #metrics: Metrics
  readonly #jobs: JobIndex
  readonly #system: SystemMetrics
  readonly #sockets: SocketDir
  readonly #models: ModelManager
  readonly #workflows: WorkflowManager
  readonly #viewers: Viewers
  readonly #startedAt = new Date().toISOString()
  readonly #snapshots: StartOptions['snapshots']
  readonly #tracing: Tracing | undefined
  #tokens: Gatekeeper | undefined
  #listeners: Listeners | undefined
  #audit: AuditLog | undefined
  #draining = false
  #snapshotRetry: NodeJS.Timeout | undefined

  constructor(settings: Settings, options: StartOptions, { config, gpus, tracing }: Found) {
    const { log, logFiles = {} } = options
    this.#settings = settings
    this.#log = log
    this.#logFiles = logFiles
    this.#snapshots = options.snapshots
    const warn = (message: string, detail?: string): void => log.warn({ detail }, message)
    if (gpus.warning !== undefined) warn(gpus.warning)
    this.#metrics = new Metrics({
      mode: settings.metricsMode,
      config,
      autoDetect: settings.modelMetricsAutoDetect,
      files: { server: logFiles.ts_metrics, handlers: logFiles.model_metrics },
      lostLines: () => lostLines(options),
      warn,
    })
    this.#tracing = tracing
    const inputs = settings.maxWaitingInputBytes ?? defaultInputBudget()
    this.#jobs = new JobIndex(new InputBudget(inputs, () => unsentBytes(this.#models.registered())))
    tracing?.exportMetrics(this.#metrics.families)
    this.#system = new SystemMetrics(this.#metrics.server, warn)
    this.#sockets = createSocketDir(settings.tempDir)
    claimFolder(this.#sockets.path)
    orphanGuard.warn = warn
    const context = {
      settings,
      serverVersion: version,
      socketDir: this.#sockets.path,
      nextWorkerId: workerNumbers(settings),
      gpus,
      devices: new Devices(gpus.list.length),
      models: () => this.#models.registered(),
      metrics: this.#metrics.wanted,
      warn,
      tellsThrown: options.tellsThrown === true,
      log: (
        level: LogLevel,
        source: string,
        message: string,
        output: WorkerOutput | undefined,
        detail?: string,
      ) => {
        if (output === undefined) log[level]({ thread: source, detail }, message)
        else log[level]({ thread: `${source}-${output}`, logger: MODEL_LOGGER }, message)
      },
    }
    const common = {
      settings,
      metrics: this.#metrics,
      jobs: this.#jobs,
      tracing,
      warn,
      inform: (message: string) => log.info(message),
      gpuCount: gpus.list.length,
      gpuUsage: () => gpuUsage(gpus),
      installDependencies: ({ name, prepared }: LocatedModel, signal: AbortSignal) => {
        const thread = `pip-${name}_${prepared.version}`
        return installDependencies(name, prepared, {
          settings,
          signal,
          log: (line) => log.info({ thread }, line),
        })
      },
      onChange: () => this.#writeSnapshot('snapshot'),
    }
    this.#models = new ModelManager({ ...common, createPool: (model) => new Pool(model, context) })
    this.#workflows = new WorkflowManager({ ...common, models: this.#models })
    this.#viewers = new Viewers({
      overview: () => this.#overview(),
      models: this.#models,
      jobs: this.#jobs,
      logTail: options.logTail,
    })
  }

  get warnings(): readonly string[] {
    return this.#models.startup.warnings
  }

  get listening(): readonly { name: string; address: string }[] {
    return this.#listeners?.listening ?? []
  }

  get consoleUrl(): string | undefined {
    return this.#listeners?.consoleUrl
  }

  get openRequests(): number {
    return this.#jobs.size
  }

  readonly status = async (): Promise<ServerStatus> => {
    const models = await this.#models.describeAll()
    const now = performance.now()
    const oldest = oldestFirst(this.#jobs).slice(0, MAX_TOLD_REQUESTS)
    const requests = oldest.map((job) => openRequest(job, now))
    return { openRequests: this.openRequests, requests, models, failed: this.#models.failed() }
  }

  get models(): ReplaceableModels {
    return this.#models
  }

  async start(options: StartOptions): Promise<void> {
    keepTicksFast()
    const { signal, restDialects, grpcDialects } = options
    const settings = this.#settings
    const callOff = (): void => this.#models.beginDrain()
    signal?.addEventListener('abort', callOff)
    await this.#sweep()
    const { audit_log: auditFile } = this.#logFiles
    const audit = auditFile && new AuditLog(auditFile)
    this.#audit = audit
    this.#tokens = await createAuthorizer(
      settings,
      (message) => this.#log.warn(message),
      (change) => audit?.write({ event: 'keys', operation: 'read api_keys_file', ...change }),
      (message) => this.#log.info(message),
    )
    const loading = this.#models.startup.loadAll(options)
    loading.catch(() => undefined) // thrown below
    const { Listeners } = await import('./listeners.ts')
    signal?.throwIfAborted()
    this.#listeners = new Listeners({
      settings,
      audit,
      limiter: limiterOf(settings),
      models: this.#models,
      workflows: this.#workflows,
      requests: this.#jobs,
      events: this.#viewers,
      configuration: options.configuration ?? (() => []),
      authorizer: this.#tokens,
      metrics: this.#metrics,
      tracing: this.#tracing,
      log: this.#log,
      restDialects,
      grpcDialects,
      portFlag: options.portFlag,
      accessLog: this.#logFiles.access_log && new AccessLog(this.#logFiles.access_log),
    })
    await this.#listeners.open()
    await loading
    signal?.throwIfAborted()
    if (options.waitForModels === true)
      await Promise.race([this.#models.startup.loaded(), rejectedBy(signal)])
    if (!settings.disableSystemMetrics) this.#system.start(settings.metricTimeInterval)
    signal?.removeEventListener('abort', callOff) // from now on close() does it
    await this.#writeSnapshot('startup')
  }

  async close(): Promise<void> {
    const listeners = this.#listeners
    const { drainTimeout, cancelGraceMs } = this.#settings
    const end = performance.now() + drainTimeout * 1000
    this.#metrics.beginDrain()
    this.#workflows.beginDrain()
    const written = this.#writeSnapshot('shutdown')
    this.#models.beginDrain()
    listeners?.beginDrain()
    this.#draining = true
    this.#viewers.close()
    const closed = listeners?.close()
    // Workflows first: between two nodes, a request has no job at any model.
    await this.#workflows.drain(drainTimeout * 1000)
    await this.#models.close(Math.max(0, end - performance.now()), cancelGraceMs)
    await this.#workflows.dispose()
    const timer = setTimeout(() => listeners?.destroy(), CONNECTION_GRACE_MS)
    await closed
    await listeners?.closeMetrics()
    clearTimeout(timer)
    this.#end()
    await Promise.all([written, this.#tracing?.close()])
  }

  async kill(): Promise<void> {
    void this.#tracing?.close()
    const ended = this.#models.kill()
    this.#workflows.kill()
    this.#listeners?.destroy()
    this.#end()
    await within(LAST_WORDS_MS, ended)
  }

  #overview(): Omit<ServerOverview, 'openRequests'> {
    const { user, system } = process.cpuUsage()
    return {
      version,
      node: process.version,
      pid: process.pid,
      startedAt: this.#startedAt,
      draining: this.#draining,
      memoryBytes: process.memoryUsage.rss(),
      cpuSeconds: (user + system) / 1e6,
      listening: [...this.listening],
    }
  }

  #end(): void {
    clearTimeout(this.#snapshotRetry)
    this.#audit?.close()
    this.#system.stop()
    this.#metrics.close()
    this.#sockets.remove((line) => this.#log.warn(line))
    this.#tokens?.close()
  }

  /** Removes files that killed servers left behind. */
  async #sweep(): Promise<void> {
    const { tempDir, modelStore } = this.#settings
    const left = (line: string): void => this.#log.warn(line)
    await sweepWorkspaces(tempDir, left)
    await sweepFolders(dirname(this.#sockets.path), /^ts-[A-Za-z0-9]{6}$/, left)
    if (modelStore !== undefined) await sweepParts(modelStore)
  }

  async #writeSnapshot(kind: SnapshotKind): Promise<void> {
    const content = this.#models.snapshot()
    if (content === undefined) return
    clearTimeout(this.#snapshotRetry)
    try {
      await this.#snapshots?.write(kind, content)
    } catch (error) {
      const isLast = this.#draining || kind === 'shutdown'
      const rest = isLast ? '' : `; trying again in ${SNAPSHOT_RETRY_MS / 1000} s`
      this.#log.error({ err: error }, `The ${kind} snapshot could not be written${rest}`)
      if (isLast) return
      clearTimeout(this.#snapshotRetry)
      this.#snapshotRetry = setTimeout(() => void this.#writeSnapshot(kind), SNAPSHOT_RETRY_MS).unref()
    }
  }
}

/** Lines that each log has lost. */
function lostLines({ logFiles = {}, console }: StartOptions): [log: string, lines: number][] {
  const logs = console === undefined ? logFiles : { console, ...logFiles }
  return Object.entries(logs).map(([name, { lost }]) => [name, lost])
}

/** Rejects when the signal is aborted. */
function rejectedBy(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    signal?.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
  })
}

/**
 * Worker numbers: from initial_worker_port for plain workers, from initial_distribution_port for rank groups.
 */
function workerNumbers(settings: Settings): (ranks: number) => number {
  let plain = settings.initialWorkerPort
  let group = settings.initialDistributionPort
  return (ranks) => (ranks === 0 ? plain++ : (group += ranks) - ranks)
}
