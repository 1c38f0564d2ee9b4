import { listStore } from '../model-archiver/store.ts'
import { ServeError } from '../protocol/errors.ts'
import type { LogLevel } from '../protocol/messages.ts'
import { createTokenStore, type TokenStore } from './auth/token-store.ts'
import type { ModelToLoad, Settings } from './config/settings.ts'
import { Listeners } from './listeners.ts'
import { MODEL_LOGGER, type Logger } from './log.ts'
import { AccessLog } from './logs/access-log.ts'
import type { LogFiles } from './logs/log-files.ts'
import { Metrics } from './metrics/metrics.ts'
import { NO_METRICS, readMetricsConfig, type MetricsConfig } from './metrics/metrics-config.ts'
import { SystemMetrics } from './metrics/system-metrics.ts'
import { ModelManager } from './models/manager.ts'
import { version } from './package-info.ts'
import type { RunningServer, StartOptions } from './server-api.ts'
import { Pool } from './workers/pool.ts'
import { createSocketDir } from './workers/socket-dir.ts'
import type { WorkerOutput } from './workers/worker-events.ts'
import { WorkflowManager } from './workflows/manager.ts'

/** Worker ids go up from TorchServe's first worker port (spec 4.5). */
const FIRST_WORKER_ID = 9000
/** What connections may take to end once their last answer is written. */
const CONNECTION_GRACE_MS = 2000

/**
 * Builds the server and starts it in TorchServe's order: tokens, models, listeners. It does not wait for the workers.
 * @throws ServeError, after everything that was started is stopped again
 */
export async function startServer(settings: Settings, options: StartOptions): Promise<RunningServer> {
  const server = new Server(settings, options, await metricsConfig(settings, options.log))
  try {
    await server.start(options)
  } catch (error) {
    server.kill()
    throw error
  }
  return server
}

/** A file that cannot be used is said in the log, and no metric of TorchServe is kept, as in TorchServe (spec 8.3). */
async function metricsConfig(settings: Settings, log: Logger): Promise<MetricsConfig> {
  try {
    return await readMetricsConfig(settings.metricsConfig)
  } catch (error) {
    log.error(ServeError.from(error).message)
    return NO_METRICS
  }
}

/** All rooms together: the only place that knows each of them. */
class Server implements RunningServer {
  readonly warnings: string[] = []
  readonly #settings: Settings
  readonly #log: Logger
  readonly #logFiles: LogFiles
  readonly #metrics: Metrics
  readonly #system: SystemMetrics
  readonly #sockets: ReturnType<typeof createSocketDir>
  readonly #models: ModelManager
  readonly #workflows: WorkflowManager
  #tokens: TokenStore | undefined
  #listeners: Listeners | undefined
  #nextWorkerId = FIRST_WORKER_ID

  constructor(settings: Settings, { log, logFiles = {} }: StartOptions, config: MetricsConfig) {
    this.#settings = settings
    this.#log = log
    this.#logFiles = logFiles
    const warn = (message: string): void => log.warn(message)
    this.#metrics = new Metrics({
      mode: settings.metricsMode,
      config,
      autoDetect: settings.modelMetricsAutoDetect,
      files: { server: logFiles.ts_metrics, handlers: logFiles.model_metrics },
      warn,
    })
    this.#system = new SystemMetrics(this.#metrics.server, warn)
    this.#sockets = createSocketDir(settings.tempDir)
    const context = {
      settings,
      serverVersion: version,
      socketDir: this.#sockets.path,
      nextWorkerId: () => this.#nextWorkerId++,
      metrics: this.#metrics.wanted,
      log: (level: LogLevel, source: string, message: string, output: WorkerOutput | undefined) => {
        if (output === undefined) log[level]({ thread: source }, message)
        else log[level]({ thread: `${source}-${output}`, logger: MODEL_LOGGER }, message)
      },
    }
    const common = {
      settings,
      metrics: this.#metrics,
      warn,
    }
    this.#models = new ModelManager({ ...common, createPool: (model) => new Pool(model, context) })
    this.#workflows = new WorkflowManager({ ...common, models: this.#models })
  }

  get listening(): readonly { name: string; address: string }[] {
    return this.#listeners?.listening ?? []
  }

  async start({ startupModels, signal }: StartOptions): Promise<void> {
    const settings = this.#settings
    this.#tokens = await createTokenStore({
      enabled: !settings.disableTokenAuthorization,
      expirationMin: settings.tokenExpirationMin,
    })
    const strict = (startupModels ?? (settings.loadModels === 'all' ? 'skip' : 'fail')) === 'fail'
    for (const model of await this.#modelsToLoad()) {
      signal?.throwIfAborted()
      await this.#load(model, strict)
    }
    signal?.throwIfAborted()
    this.#listeners = new Listeners({
      settings,
      models: this.#models,
      workflows: this.#workflows,
      authorizer: this.#tokens,
      metrics: this.#metrics,
      log: this.#log,
      accessLog: this.#logFiles.access_log && new AccessLog(this.#logFiles.access_log),
    })
    await this.#listeners.open()
    if (!settings.disableSystemMetrics) this.#system.start(settings.metricTimeInterval)
  }

  async close(): Promise<void> {
    const listeners = this.#listeners
    const { drainTimeout, cancelGraceMs } = this.#settings
    const end = performance.now() + drainTimeout * 1000
    this.#workflows.beginDrain()
    this.#models.beginDrain()
    listeners?.beginDrain()
    const closed = listeners?.close()
    // First: a workflow between two nodes has no job at any model.
    await this.#workflows.drain(drainTimeout * 1000)
    await this.#models.close(Math.max(0, end - performance.now()), cancelGraceMs)
    await this.#workflows.dispose()
    const timer = setTimeout(() => listeners?.destroy(), CONNECTION_GRACE_MS)
    await closed
    clearTimeout(timer)
    this.#end()
  }

  kill(): void {
    this.#models.kill()
    this.#workflows.kill()
    this.#listeners?.destroy()
    this.#end()
  }

  #end(): void {
    this.#system.stop()
    this.#metrics.close()
    this.#sockets.remove()
    this.#tokens?.close()
  }

  async #modelsToLoad(): Promise<readonly ModelToLoad[]> {
    const { loadModels, modelStore } = this.#settings
    if (loadModels !== 'all') return loadModels
    if (modelStore === undefined) return []
    const { models, skipped } = await listStore(modelStore)
    this.warnings.push(...skipped.map(({ reason }) => reason))
    return models
  }

  async #load({ location, name }: ModelToLoad, strict: boolean): Promise<void> {
    try {
      await this.#models.loadAtStartup(location, name)
    } catch (thrown) {
      const error = ServeError.from(thrown)
      const message = `Failed to load model: ${location}: ${error.message}`
      if (strict) throw new ServeError(error.code, message, { cause: error, detail: error.detail })
      this.#log.error({ detail: error.detail }, message)
    }
  }
}
