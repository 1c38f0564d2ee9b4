import type { MetricKind, MetricSpec } from '../../../protocol/messages.ts'
import type { MetricLines } from './metric-lines.ts'
import { labelText, type PageFamily, type Sample } from './page.ts'
import { Series } from './series.ts'

/** Maximum label sets of one owner per metric. More mean a label without bound, such as user ids. */
export const MAX_SERIES = 1_000
/** The owner of what stays as long as the server. */
const SERVER = ''

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
  readonly #series = new Map<string, { readonly series: Series; owners: number }>()
  /** Label sets by owner. */
  readonly #owned = new Map<string, Set<string>>()
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

  /**
   * The series of these label values, in the order of `labelNames`.
   * @param owner what it goes with: it is removed when the last of its owners is released
   */
  series(values: readonly string[], owner = SERVER): Series {
    const labels = labelText(this.labelNames, values)
    const owned = this.#owned.get(owner) ?? new Set()
    const known = this.#series.get(labels)
    if (known !== undefined && owned.has(labels)) return known.series
    if (owned.size >= MAX_SERIES) return this.#beyond()
    const { series, owners } = known ?? { series: this.#create(labels, values), owners: 0 }
    this.#series.set(labels, { series, owners: owners + 1 })
    this.#owned.set(owner, owned.add(labels))
    return series
  }

  /** Removes what nobody else owns. */
  release(owner: string): void {
    for (const labels of this.#owned.get(owner) ?? []) {
      const one = this.#series.get(labels)!
      one.owners -= 1
      if (one.owners > 0) continue
      one.series.close()
      this.#series.delete(labels)
    }
    this.#owned.delete(owner)
  }

  get isEmpty(): boolean {
    return this.#series.size === 0
  }

  *samples(): Iterable<Sample> {
    for (const { series } of this.#series.values()) yield* series.samples(this.name)
  }

  #create(labels: string, values: readonly string[]): Series {
    const lines = this.#options.lines?.series(this.name, this.#unit, this.kind, this.labelNames, values)
    return new Series(this.kind, labels, lines)
  }

  #beyond(): Series {
    if (this.#overflow === undefined) {
      this.#overflow = new Series(this.kind)
      this.#options.warn(
        `Metric ${this.name} has more than ${MAX_SERIES} sets of dimension values of one model; further ones are dropped`,
      )
    }
    return this.#overflow
  }
}
