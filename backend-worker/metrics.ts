import type { MetricKind, WantedMetrics } from '../protocol/messages.ts'
import type { HandlerMetrics, Metric } from './handler.ts'
import { MetricSender } from './metric-sender.ts'
import { type Outlet, sendLog } from './outlet.ts'

const TIME_UNITS: readonly string[] = ['ms', 's']
const SIZE_UNITS: readonly string[] = ['B', 'kB', 'MB', 'GB']

type Dimensions = Readonly<Record<string, string>>

/**
 * `context.metrics`: sends values to the frontend with the dimensions that TorchServe adds
 * (ts/metrics/metrics_store.py in pytorch/serve).
 */
export class ContextMetrics implements HandlerMetrics {
  readonly #cache: MetricCache
  readonly #modelName: string
  readonly #requestIds: readonly string[]

  constructor(cache: MetricCache, modelName: string, requestIds: readonly string[]) {
    this.#cache = cache
    this.#modelName = modelName
    this.#requestIds = requestIds
  }

  addMetric(
    name: string,
    value: number,
    unit: string,
    dimensions?: Dimensions,
    kind: MetricKind = 'counter',
    requestIndex?: number,
  ): void {
    const requestIds =
      requestIndex === undefined ? this.#requestIds.join(',') : (this.#requestIds[requestIndex] ?? '')
    // The handler's dimensions come first, as in TorchServe.
    const all = {
      ...dimensions,
      ModelName: dimensions?.['ModelName'] ?? this.#modelName,
      Level: dimensions?.['Level'] ?? 'Model',
    }
    this.#cache.record({ name, kind, unit, value, requestIds, dimensions: all })
  }

  addCounter(name: string, value: number, dimensions?: Dimensions, requestIndex?: number): void {
    this.addMetric(name, value, 'count', dimensions, 'counter', requestIndex)
  }

  addTime(
    name: string,
    value: number,
    unit: 'ms' | 's' = 'ms',
    dimensions?: Dimensions,
    kind: MetricKind = 'gauge',
    requestIndex?: number,
  ): void {
    if (!TIME_UNITS.includes(unit)) this.#cache.refuse(name, 'the unit of a time must be ms or s')
    else this.addMetric(name, value, unit, dimensions, kind, requestIndex)
  }

  addSize(
    name: string,
    value: number,
    unit: 'B' | 'kB' | 'MB' | 'GB' = 'MB',
    dimensions?: Dimensions,
    kind: MetricKind = 'gauge',
    requestIndex?: number,
  ): void {
    if (!SIZE_UNITS.includes(unit)) this.#cache.refuse(name, 'the unit of a size must be B, kB, MB or GB')
    else this.addMetric(name, value, unit, dimensions, kind, requestIndex)
  }

  addPercent(
    name: string,
    value: number,
    dimensions?: Dimensions,
    kind: MetricKind = 'gauge',
    requestIndex?: number,
  ): void {
    this.addMetric(name, value, 'percent', dimensions, kind, requestIndex)
  }

  addError(name: string, value: number, dimensions?: Dimensions): void {
    const all = { ...dimensions, Level: dimensions?.['Level'] ?? 'Error' }
    this.#cache.record({ name, kind: 'counter', unit: '', value, dimensions: all, requestIds: '' })
  }

  addMetricToCache(
    name: string,
    unit: string,
    dimensionNames: readonly string[] = [],
    kind: MetricKind = 'counter',
  ): Metric {
    return this.#cache.add(name, unit, dimensionNames, kind)
  }

  getMetric(name: string, kind: MetricKind = 'counter'): Metric | undefined {
    return this.#cache.get(name, kind)
  }
}

const MAX_CHARACTERS = 256
const MAX_DIMENSIONS = 16
const MAX_METRICS = 1_000

/** TorchServe's units (ts/metrics/unit.py in pytorch/serve). */
const UNITS: ReadonlyMap<string, string> = new Map([
  ['ms', 'Milliseconds'],
  ['s', 'Seconds'],
  ['percent', 'Percent'],
  ['count', 'Count'],
  ['B', 'Bytes'],
  ['kB', 'Kilobytes'],
  ['MB', 'Megabytes'],
  ['GB', 'Gigabytes'],
  ['', 'unit'],
])

/** One value to be sent. */
export interface Sample {
  name: string
  kind: MetricKind
  unit: string
  value: number
  dimensions: Readonly<Record<string, string>>
  /** Separated by commas; empty: no request. */
  requestIds: string
}

/**
 * The metrics of a worker: those that metrics.yaml declares, and those that the handler adds
 * (docs/metrics-and-logs.md).
 */
export class MetricCache {
  readonly sender: MetricSender
  readonly #outlet: Outlet
  readonly #metrics = new Map<string, CachedMetric>()

  /** Without `wanted` the frontend needs every metric. */
  constructor(outlet: Outlet, wanted?: WantedMetrics) {
    this.#outlet = outlet
    this.sender = new MetricSender(outlet, wanted)
    for (const { name, unit, dimensions, kind } of wanted?.declared ?? [])
      this.add(name, unit, dimensions, kind)
  }

  /** Replaces a metric with the same name and kind. */
  add(name: string, unit: string, dimensionNames: readonly string[], kind: MetricKind): CachedMetric {
    const metric = new CachedMetric(this, { name: clip(name), unit, dimensionNames, kind })
    const key = `${kind} ${metric.name}`
    if (this.#metrics.size < MAX_METRICS || this.#metrics.has(key)) this.#metrics.set(key, metric)
    return metric
  }

  get(name: string, kind: MetricKind): CachedMetric | undefined {
    return this.#metrics.get(`${kind} ${clip(name)}`)
  }

  /** An invalid value is logged and ignored: it must not fail a prediction. */
  record({ name, kind, unit, value, dimensions, requestIds }: Sample): void {
    const clipped = clip(name)
    if (!Number.isFinite(value)) this.refuse(name, `its value must be a number, not ${clip(value)}`)
    else if (kind === 'counter' && value < 0)
      this.refuse(name, `a counter must not have a negative value (${value})`)
    else if (this.sender.wants(clipped)) {
      const word = UNITS.get(unit) ?? clip(unit)
      this.sender.series(clipped, kind, word, shorten(dimensions)).add(value, requestIds)
    }
  }

  refuse(name: string, why: string): void {
    sendLog(this.#outlet, 'warn', `Metric ${clip(name)} is ignored: ${why}`)
  }
}

interface CachedMetricSpec {
  name: string
  unit: string
  dimensionNames: readonly string[]
  kind: MetricKind
}

class CachedMetric implements Metric {
  readonly name: string
  readonly unit: string
  readonly kind: MetricKind
  readonly dimensionNames: readonly string[]
  readonly #cache: MetricCache

  constructor(cache: MetricCache, spec: CachedMetricSpec) {
    this.#cache = cache
    this.name = spec.name
    this.unit = spec.unit
    this.kind = spec.kind
    this.dimensionNames = [...spec.dimensionNames]
  }

  addOrUpdate(value: number, dimensionValues: readonly string[] = [], requestId = ''): void {
    const names = this.dimensionNames
    if (dimensionValues.length === names.length) {
      this.update(
        value,
        requestId,
        Object.fromEntries(names.map((name, index) => [name, dimensionValues[index]!])),
      )
    } else {
      this.#cache.refuse(
        this.name,
        `it must have a value for each of its dimensions [${names.join(', ')}], not ${dimensionValues.length} values`,
      )
    }
  }

  update(value: number, requestId = '', dimensions: Readonly<Record<string, string>> = {}): void {
    const { name, unit, kind } = this
    this.#cache.record({ name, unit, kind, value, dimensions, requestIds: requestId })
  }
}

function shorten(dimensions: Readonly<Record<string, string>>): Record<string, string> {
  const first = Object.entries(dimensions).slice(0, MAX_DIMENSIONS)
  return Object.fromEntries(first.map(([name, value]) => [clip(name), clip(value)]))
}

/** Handlers may be plain JavaScript, so a string argument can be of any type. */
function clip(text: unknown): string {
  return String(text).slice(0, MAX_CHARACTERS)
}
