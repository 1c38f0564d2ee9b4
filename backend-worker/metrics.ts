import type { MetricKind } from '../protocol/messages.ts'
import type { HandlerMetrics, Metric } from './handler.ts'
import type { MetricCache } from './metric-cache.ts'

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
