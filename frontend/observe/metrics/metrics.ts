import type { MetricSpec, WantedMetrics } from '../../../protocol/messages.ts'
import type { LineWriter } from '../logs/log-file.ts'
import { Families } from './families.ts'
import { MetricFamily } from './family.ts'
import { HandlerMetrics } from './handler-metrics.ts'
import { MetricLines } from './metric-lines.ts'
import type { MetricsConfig } from './metrics-config.ts'
import { ModelMetrics } from './model-metrics.ts'
import { ownFamilies } from './own-families.ts'
import { PAGE_CONTENT_TYPE, type PageFamily, renderPage } from './page.ts'
import { Refusals } from './refusals.ts'
import { ServerMetrics } from './server-metrics.ts'

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
  readonly #lines: { server: MetricLines | undefined; handlers: MetricLines | undefined }

  constructor(options: MetricsOptions) {
    const { config, autoDetect, files, mode } = options
    const warn = once(options.warn)
    this.#options = { ...options, warn }
    const lines = (writer: LineWriter | undefined) =>
      writer === undefined || mode === 'prometheus' ? undefined : new MetricLines(writer)
    this.#lines = { server: lines(files.server), handlers: lines(files.handlers) }
    this.wanted = { declared: [...config.model], others: autoDetect }
    this.server = new ServerMetrics(
      new Map(config.ts.map((spec) => [spec.name, this.#family(spec, this.#lines.server)])),
      warn,
    )
    this.#handlers = new HandlerMetrics({
      declared: config.model,
      autoDetect,
      create: (spec) => this.#family(spec, this.#lines.handlers),
      remove: (family) => this.#page.remove(family),
      warn,
    })
    for (const family of ownFamilies(this.#models, this.refusals, options.lostLines)) {
      if (this.#page.add(family) !== undefined)
        warn(`Metric ${family.name} must have another name: the server uses this one`)
    }
  }

  /** Counts one REST response. */
  response(status: number): void {
    this.server.response(status)
  }

  /** The metrics of one model version. */
  model(name: string, version: string): ModelMetrics {
    const sinks = { server: this.server, handlers: this.#handlers }
    const owners = { name: JSON.stringify([name]), version: JSON.stringify([name, version]) }
    const metrics = new ModelMetrics(name, version, sinks, owners, (gone) => {
      this.#models.delete(gone)
      this.#release(owners.version)
      this.#release(owners.name)
    })
    this.#models.add(metrics)
    for (const owner of [owners.name, owners.version])
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
    this.#lines.server?.close()
    this.#lines.handlers?.close()
  }

  /** Makes a metric with the destinations of the current mode. */
  #family(spec: MetricSpec, lines: MetricLines | undefined): MetricFamily {
    const { mode, warn } = this.#options
    const legacy = mode === 'legacy' && LEGACY.has(spec.name)
    const family = new MetricFamily(spec, { lines: legacy ? undefined : lines, warn })
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
