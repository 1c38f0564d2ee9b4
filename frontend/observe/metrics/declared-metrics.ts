import { hostname } from 'node:os'
import type { MetricMessage, MetricSpec } from '../../../protocol/messages.ts'
import { ownValue } from '../../../common/json.ts'
import { type MetricFamily, Series } from './series.ts'

const HOST = hostname()

/** TorchServe's three counters for one model and requested version. */
export interface VersionSeries {
  readonly requests: Series
  readonly latency: Series
  readonly queue: Series
}

/**
 * The server's own metrics under TorchServe's names, if metrics.yaml declares them. Recording an undeclared
 * metric has no effect.
 */
export class ServerMetrics {
  readonly queueTime: Series
  readonly workerThreadTime: Series
  readonly #families: ReadonlyMap<string, MetricFamily>
  readonly #warn: (message: string) => void
  /** Counts one REST response; a status that is neither 2xx nor 4xx counts as 5XX, as in TorchServe. */
  readonly response: (status: number) => void

  constructor(families: readonly MetricFamily[], warn: (message: string) => void) {
    this.#families = new Map(families.map((family) => [family.name, family]))
    this.#warn = warn
    this.queueTime = this.#series('QueueTime', ['Host'])
    this.workerThreadTime = this.#series('WorkerThreadTime', ['Host'])
    const answers = ['2XX', '4XX', '5XX'].map((each) => this.#series(`Requests${each}`, ['Host']))
    this.response = (status) => {
      const index = status >= 200 && status < 300 ? 0 : status >= 400 && status < 500 ? 1 : 2
      answers[index]!.record(1)
    }
  }

  /** @param owner see MetricFamily.series */
  version(model: string, version: string, owner: string): VersionSeries {
    return {
      requests: this.#series('ts_inference_requests_total', [model, version], owner),
      latency: this.#series('ts_inference_latency_microseconds', [model, version], owner),
      queue: this.#series('ts_queue_latency_microseconds', [model, version], owner),
    }
  }

  /** `worker` is `W-9000-echo_1.0`. */
  workerLoaded(worker: string, milliseconds: number): void {
    this.#series('WorkerLoadTime', [worker, 'Host'], worker).record(Math.round(milliseconds))
  }

  /** Removes what nobody else owns. @param owner a model, a version, or a worker */
  release(owner: string): void {
    for (const family of this.#families.values()) family.release(owner)
  }

  /** Records a measurement of the machine, or of its `device`. */
  system(name: string, value: number, device?: string): void {
    this.#series(name, device === undefined ? ['Host'] : ['Host', device]).record(value)
  }

  #series(name: string, values: readonly string[], owner?: string): Series {
    const family = this.#families.get(name)
    if (family?.labelNames.length === values.length + 1) return family.series([...values, HOST], owner)
    if (family !== undefined) {
      this.#warn(
        `Metric ${name} must have ${values.length + 1} dimensions in metrics_config, the last of them the host; it is left out`,
      )
    }
    return new Series({ name, kind: 'gauge', unit: '' }, { names: [], values: [] })
  }
}

/** Maximum number of detected metrics; further ones are ignored. */
const MAX_DETECTED = 1_000
/** Characters of a name, a unit, or the value of a dimension. */
const MAX_CHARACTERS = 256
/** Characters of the request ids of one value: those of a batch. */
const MAX_IDS = 8_192
/** Dimensions of a detected metric. */
const MAX_DIMENSIONS = 16

export interface HandlerMetricsOptions {
  declared: readonly MetricSpec[]
  /** model_metrics_auto_detect */
  autoDetect: boolean
  /** Makes a metric with the destinations of the current mode. */
  create: (spec: MetricSpec) => MetricFamily
  /** A detected metric is gone with its last series. */
  remove: (family: MetricFamily) => void
  warn: (message: string) => void
}

/** Metrics of handlers: those of metrics.yaml and, if enabled, detected ones. */
export class HandlerMetrics {
  readonly #options: HandlerMetricsOptions
  readonly #families = new Map<string, MetricFamily>()
  readonly #declared: ReadonlySet<string>

  constructor(options: HandlerMetricsOptions) {
    this.#options = options
    this.#declared = new Set(options.declared.map(({ name }) => name))
    for (const spec of options.declared) this.#add(spec)
  }

  /**
   * For a declared metric, the declaration overrides kind, unit and dimensions of the message.
   * @param model takes the place of the dimension ModelName: a handler cannot change another model's metrics
   * @param owner see MetricFamily.series
   */
  record(message: MetricMessage, model: string, owner: string): void {
    const { dimensions, requestIds } = message
    const name = clip(message.name)
    const family = this.#families.get(name) ?? this.#detect(message)
    if (family === undefined) return
    const values: string[] = []
    for (const dimension of family.labelNames.slice(0, -1)) {
      const value = ownValue(dimensions, dimension)
      if (value === undefined) {
        this.#options.warn(`Metric ${name} must have the dimension ${dimension}; the value is dropped`)
        return
      }
      values.push(dimension === 'ModelName' ? model : clip(value))
    }
    values.push(HOST)
    const series = family.series(values, owner)
    for (const [index, value] of message.values.entries()) {
      if (family.kind === 'counter' && value < 0)
        this.#options.warn(`Counter ${name} must not be negative; the value is dropped`)
      else series.record(value, clip(requestIds[index] ?? '', MAX_IDS) || null)
    }
  }

  /** Removes what nobody else owns. */
  release(owner: string): void {
    for (const [name, family] of this.#families) {
      family.release(owner)
      if (!family.isEmpty || this.#declared.has(name)) continue
      this.#families.delete(name)
      this.#options.remove(family)
    }
  }

  #detect({ name, kind, unit, dimensions }: MetricMessage): MetricFamily | undefined {
    if (!this.#options.autoDetect) return undefined
    if (this.#families.size >= this.#options.declared.length + MAX_DETECTED) {
      this.#options.warn(`More than ${MAX_DETECTED} metrics were detected; further ones are dropped`)
      return undefined
    }
    const names = Object.keys(dimensions).slice(0, MAX_DIMENSIONS)
    return this.#add({
      name: clip(name),
      kind,
      unit: clip(unit),
      dimensions: names.map((each) => clip(each)),
    })
  }

  #add(spec: MetricSpec): MetricFamily {
    const own = spec.dimensions.filter((dimension) => dimension !== 'Hostname')
    const family = this.#options.create({ ...spec, dimensions: [...own, 'Hostname'] })
    this.#families.set(spec.name, family)
    return family
  }
}

/** As the worker's library does, which a handler need not use. No part of a longer text stays in memory. */
function clip(text: string, characters = MAX_CHARACTERS): string {
  return text.length <= characters ? text : Buffer.from(text.slice(0, characters)).toString()
}
