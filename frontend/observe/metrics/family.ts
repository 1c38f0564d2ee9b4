import type { MetricKind, MetricSpec } from '../../../protocol/messages.ts'
import type { MetricLines } from './metric-lines.ts'
import { labelText, type PageFamily, type Sample } from './page.ts'
import { Series } from './series.ts'

/** Maximum label sets per metric. More mean a label without bound, such as user ids. */
export const MAX_SERIES = 1_000

export interface FamilyOptions {
  /** Log file of its values; undefined: none. */
  lines: MetricLines | undefined
  warn: (message: string) => void
}

/** A metric that metrics.yaml declares, or a detected one. */
export class MetricFamily implements PageFamily {
  readonly name: string
  readonly kind: MetricKind
  readonly help: string
  readonly labelNames: readonly string[]
  readonly #unit: string
  readonly #options: FamilyOptions
  readonly #series = new Map<string, Series>()
  /** Takes the values of label sets beyond the limit. */
  #overflow: Series | undefined

  /** The dimensions of `spec` become the labels. */
  constructor(spec: MetricSpec, options: FamilyOptions) {
    this.name = spec.name
    this.kind = spec.kind
    this.help = `Torchserve prometheus ${spec.kind} metric with unit: ${spec.unit}`
    this.labelNames = spec.dimensions
    this.#unit = spec.unit
    this.#options = options
  }

  /** The series of these label values, in the order of `labelNames`. */
  series(values: readonly string[]): Series {
    const labels = labelText(this.labelNames, values)
    const known = this.#series.get(labels)
    if (known !== undefined) return known
    if (this.#series.size >= MAX_SERIES) return this.#beyond()
    const lines = this.#options.lines?.series(this.name, this.#unit, this.kind, this.labelNames, values)
    const series = new Series(this.kind, labels, lines)
    this.#series.set(labels, series)
    return series
  }

  *samples(): Iterable<Sample> {
    for (const series of this.#series.values()) yield* series.samples(this.name)
  }

  #beyond(): Series {
    if (this.#overflow === undefined) {
      this.#overflow = new Series(this.kind)
      this.#options.warn(
        `Metric ${this.name} has more than ${MAX_SERIES} sets of dimension values; further ones are dropped`,
      )
    }
    return this.#overflow
  }
}
