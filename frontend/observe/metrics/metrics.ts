import type { MetricSpec, WantedMetrics } from '../../../protocol/messages.ts'
import type { LineWriter } from '../logs/appender.ts'
import { HandlerMetrics, ServerMetrics } from './declared-metrics.ts'
import type { MetricsConfig } from './metrics-config.ts'
import { ModelMetrics } from './model-metrics.ts'
import { ownFamilies } from './own-families.ts'
import { Families, PAGE_CONTENT_TYPE, type PageFamily, renderPage } from './page.ts'
import { Refusals } from './refusals.ts'
import { MetricFamily, MetricLog } from './series.ts'

export type MetricsMode = 'log' | 'prometheus' | 'legacy'

export interface MetricsOptions {
  mode: MetricsMode
  config: MetricsConfig
  /** model_metrics_auto_detect */
  autoDetect: boolean
  /** Files ts_metrics.log and model_metrics.log; undefined: not written. */
  files: { server?: LineWriter; handlers?: LineWriter }
  /** Lines that each log has lost; absent: no logs. */
  lostLines?: () => Iterable<readonly [log: string, lines: number]>
  /** Gets each message once. */
  warn: (message: string) => void
}

/** Metrics that the mode `legacy` shows on the page instead of in the log files. */
const LEGACY: ReadonlySet<string> = new Set([
  'ts_inference_requests_total',
  'ts_inference_latency_microseconds',
  'ts_queue_latency_microseconds',
])

/**
 * All metrics: TorchServe's, which metrics.yaml declares and `metrics_mode` sends to the page, to log files,
 * or to both, and this server's own, which are always on the page.
 */
export class Metrics {
  readonly server: ServerMetrics
  /** Counts one REST response. */
  readonly response: (status: number) => void
  readonly refusals = new Refusals()
  /** The metrics that workers must send. */
  readonly wanted: WantedMetrics
  readonly #handlers: HandlerMetrics
  readonly #models = new Set<ModelMetrics>()
  /** Number of live models by owner. */
  readonly #holders = new Map<string, number>()
  #isStopping = false
  readonly #page = new Families()
  readonly #options: MetricsOptions
  readonly #logs: { server: MetricLog | undefined; handlers: MetricLog | undefined }

  constructor(options: MetricsOptions) {
    const { config, autoDetect, files, mode } = options
    const warn = once(options.warn)
    this.#options = { ...options, warn }
    const log = (writer: LineWriter | undefined) =>
      writer === undefined || mode === 'prometheus' ? undefined : new MetricLog(writer)
    this.#logs = { server: log(files.server), handlers: log(files.handlers) }
    this.wanted = { declared: [...config.model], others: autoDetect }
    const families = config.ts.map((spec) => this.#family(spec, this.#logs.server))
    this.server = new ServerMetrics(families, warn)
    this.response = this.server.response
    this.#handlers = new HandlerMetrics({
      declared: config.model,
      autoDetect,
      create: (spec) => this.#family(spec, this.#logs.handlers),
      remove: (family) => this.#page.remove(family),
      warn,
    })
    for (const family of ownFamilies(this.#models, this.refusals, options.lostLines)) {
      if (this.#page.add(family) !== undefined)
        warn(`Metric ${family.name} must have another name: the server uses this one`)
    }
  }

  /** The metrics of one model version. */
  model(name: string, version: string): ModelMetrics {
    const metrics = new ModelMetrics(name, version, this.server, this.#handlers, (gone) => {
      this.#models.delete(gone)
      this.#release(gone.owners.version)
      this.#release(gone.owners.name)
    })
    this.#models.add(metrics)
    for (const owner of Object.values(metrics.owners))
      this.#holders.set(owner, (this.#holders.get(owner) ?? 0) + 1)
    return metrics
  }

  /** The server stops: the series of models that end from now on are exported once more. */
  beginDrain(): void {
    this.#isStopping = true
  }

  /** The series of an owner go with the last model that has this name, or this name and version. */
  #release(owner: string): void {
    if (this.#isStopping) return
    const holders = this.#holders.get(owner)! - 1
    this.#holders.set(owner, holders)
    if (holders > 0) return
    this.#holders.delete(owner)
    this.server.release(owner)
    this.#handlers.release(owner)
  }

  /** What the page shows. */
  get families(): Iterable<PageFamily> {
    return this.#page
  }

  /** Renders the page; `names` selects samples. */
  page(names?: readonly string[]): { contentType: string; body: Buffer } {
    return { contentType: PAGE_CONTENT_TYPE, body: renderPage(this.#page, names) }
  }

  /** Writes the values held back from the log files. */
  close(): void {
    this.#logs.server?.close()
    this.#logs.handlers?.close()
  }

  /** Makes a metric with the destinations of the current mode. */
  #family(spec: MetricSpec, log: MetricLog | undefined): MetricFamily {
    const { mode, warn } = this.#options
    const legacy = mode === 'legacy' && LEGACY.has(spec.name)
    const family = new MetricFamily(spec, legacy ? undefined : log, warn)
    if (mode === 'legacy' && !legacy) return family
    const problem = this.#page.add(family, family.labelNames)
    if (problem !== undefined) warn(`Metric ${spec.name} is not on the metrics page: ${problem}`)
    return family
  }
}

const MAX_MESSAGES = 1_000

/** Passes each message on once; stops after a great number of different ones. */
function once(warn: (message: string) => void): (message: string) => void {
  const said = new Set<string>()
  return (message) => {
    if (said.has(message) || said.size >= MAX_MESSAGES) return
    said.add(message)
    warn(message)
  }
}
