import type { MetricKind } from '../../../protocol/messages.ts'
import { Distribution, TORCHSERVE_BOUNDS } from './distribution.ts'
import type { LineSeries } from './metric-lines.ts'
import { distributionSamples, type Sample } from './page.ts'

/** One metric with one set of label values. Recording a value takes a few additions. */
export class Series {
  readonly labels: string
  readonly #adds: boolean
  readonly #distribution: Distribution | undefined
  readonly #lines: LineSeries | undefined
  #value = 0

  /** `labels`: see `labelText`. `lines`: further destination of its values. */
  constructor(kind: MetricKind, labels = '', lines?: LineSeries) {
    this.labels = labels
    this.#adds = kind === 'counter'
    this.#distribution = kind === 'histogram' ? new Distribution(TORCHSERVE_BOUNDS) : undefined
    this.#lines = lines
  }

  /**
   * Adds to a counter, sets a gauge, observes a value of a histogram.
   * @param requestIds the requests that a handler measured; null: none. Undefined: a metric of the server
   */
  record(value: number, requestIds?: string | null): void {
    if (this.#distribution !== undefined) this.#distribution.observe(value)
    else this.#value = this.#adds ? this.#value + value : value
    this.#lines?.record(value, requestIds)
  }

  /** It is removed: writes what its log lines hold back. */
  close(): void {
    this.#lines?.close()
  }

  samples(name: string): Iterable<Sample> {
    return this.#distribution === undefined
      ? [{ name, labels: this.labels, value: this.#value }]
      : distributionSamples(name, this.labels, this.#distribution)
  }
}
