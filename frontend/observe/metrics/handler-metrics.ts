import type { MetricMessage, MetricSpec } from '../../../protocol/messages.ts'
import { ownValue } from '../../../common/json.ts'
import type { MetricFamily } from './family.ts'
import { HOST } from './server-metrics.ts'

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
   * @param owner see MetricFamily.series
   */
  record(message: MetricMessage, owner: string): void {
    const { dimensions } = message
    const name = clip(message.name)
    const family = this.#families.get(name) ?? this.#detect(message)
    if (family === undefined) return
    const names = family.labelNames.slice(0, -1)
    const values = names.map((each) => ownValue(dimensions, each))
    const missing = values.indexOf(undefined)
    if (missing !== -1) {
      this.#options.warn(`Metric ${name} must have the dimension ${names[missing]!}; the value is dropped`)
      return
    }
    const series = family.series([...(values as string[]).map((each) => clip(each)), HOST], owner)
    message.values.forEach((value, index) => {
      if (family.kind === 'counter' && value < 0)
        this.#options.warn(`Counter ${name} must not be negative; the value is dropped`)
      else series.record(value, clip(message.requestIds[index] ?? '', MAX_IDS) || null)
    })
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
