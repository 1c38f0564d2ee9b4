import type { MetricKind, MetricSpec } from '../../../protocol/messages.ts'
import { escapeControls } from '../../../common/texts.ts'
import type { LineWriter } from '../logs/appender.ts'
import { localTime } from '../logs/log-line.ts'
import { labelText, number, type Sample } from './sample.ts'
import { Distribution, TORCHSERVE_BUCKETS } from './tally.ts'

/** Maximum label sets of one owner per metric. More mean a label without bound, such as user ids. */
export const MAX_SERIES = 1_000
/** Lines per second that one metric with one set of dimensions may write; one more sums up the rest. */
export const LINES_PER_SECOND = 100
/** The owner of what stays as long as the server. */
const SERVER = ''

/** A log file of metrics. Bounds its volume at any request rate. */
export class MetricLog {
  readonly #writer: LineWriter
  readonly #series = new Set<Series>()
  #timer: NodeJS.Timeout | undefined

  constructor(writer: LineWriter) {
    this.#writer = writer
  }

  add(series: Series): void {
    this.#series.add(series)
  }

  remove(series: Series): void {
    this.#series.delete(series)
  }

  /** @param requestIds see `Series.record`; null is logged as `requestID:null` */
  write(head: string, value: number, tail: string, requestIds: string | null | undefined): void {
    const now = Date.now()
    const ids = requestIds === undefined ? '' : `,requestID:${escapeControls(requestIds ?? 'null')}`
    const seconds = Math.floor(now / 1000)
    this.#writer.write(`${localTime(now)}${head}${number(value)}${tail}${ids},timestamp:${seconds}\n`)
    this.#timer ??= setInterval(() => this.#flush(), 1000).unref()
  }

  close(): void {
    this.#flush()
    clearInterval(this.#timer)
  }

  #flush(): void {
    for (const series of this.#series) series.flush()
  }
}

/**
 * One metric with one set of label values. Its log gets a line for each value, up to a limit. Beyond the
 * limit, a counter's values are added up, and of a gauge or a histogram the last value is kept.
 */
export class Series {
  readonly #name: string
  readonly #adds: boolean
  readonly #distribution: Distribution | undefined
  readonly #log: MetricLog | undefined
  readonly #names: readonly string[]
  readonly #values: readonly string[]
  /** Label text, made for the first page. */
  #labels: string | undefined
  #value = 0
  readonly #head: string = ''
  readonly #tail: string = ''
  #linesLeft = LINES_PER_SECOND
  #held: number | undefined
  #heldIds: string | null | undefined

  /**
   * @param labels names and values, in the same order; the last one is the host
   * @param log further destination of its values
   */
  constructor(
    { name, unit, kind }: Omit<MetricSpec, 'dimensions'>,
    labels: { readonly names: readonly string[]; readonly values: readonly string[] },
    log?: MetricLog,
  ) {
    this.#name = name
    this.#adds = kind === 'counter'
    this.#distribution = kind === 'histogram' ? new Distribution(TORCHSERVE_BUCKETS) : undefined
    this.#names = labels.names
    this.#values = labels.values
    this.#log = log
    if (log === undefined) return
    const pairs = labels.names.slice(0, -1).map((each, index) => `${each}:${labels.values[index]!}`)
    this.#head = ` - ${escapeControls(`${name}.${unit}`)}:`
    this.#tail = `|#${escapeControls(pairs.join(','))}|#hostname:${escapeControls(labels.values.at(-1) ?? '')}`
    log.add(this)
  }

  /**
   * Adds to a counter, sets a gauge, observes a value of a histogram.
   * @param requestIds the requests that a handler measured; null: none. Undefined: a metric of the server
   */
  record(value: number, requestIds?: string | null): void {
    if (this.#distribution !== undefined) this.#distribution.observe(value)
    else this.#value = this.#adds ? this.#value + value : value
    if (this.#log === undefined) return
    if (this.#linesLeft > 0) {
      this.#linesLeft -= 1
      this.#log.write(this.#head, value, this.#tail, requestIds)
    } else {
      this.#held = this.#adds && this.#held !== undefined ? this.#held + value : value
      this.#heldIds = requestIds
    }
  }

  /** Writes the line that was held back. The log calls it every second. */
  flush(): void {
    this.#linesLeft = LINES_PER_SECOND
    if (this.#held === undefined) return
    this.#log?.write(this.#head, this.#held, this.#tail, this.#heldIds)
    this.#held = undefined
  }

  /** The series is removed: nothing is held back any more. */
  close(): void {
    this.flush()
    this.#log?.remove(this)
  }

  samples(): Iterable<Sample> {
    const name = this.#name
    this.#labels ??= labelText(this.#names, this.#values)
    return this.#distribution === undefined
      ? [{ name, labels: this.#labels, value: this.#value }]
      : distributionSamples(name, this.#labels, this.#distribution)
  }
}

/** A metric that metrics.yaml declares, or a detected one. */
export class MetricFamily {
  readonly name: string
  readonly kind: MetricKind
  readonly help: string
  readonly labelNames: readonly string[]
  readonly #spec: MetricSpec
  readonly #log: MetricLog | undefined
  readonly #warn: (message: string) => void
  /** By the values of the labels, as JSON. */
  readonly #series = new Map<string, { readonly series: Series; owners: number }>()
  /** Keys of `#series` by owner. */
  readonly #owned = new Map<string, Set<string>>()
  /** Takes the values of label sets beyond the limit. */
  #overflow: Series | undefined

  /**
   * The dimensions of `spec` become the labels.
   * @param log log of its values; undefined: none
   */
  constructor(spec: MetricSpec, log: MetricLog | undefined, warn: (message: string) => void) {
    this.name = spec.name
    this.kind = spec.kind
    this.help = `Torchserve prometheus ${spec.kind} metric with unit: ${spec.unit}`
    this.labelNames = spec.dimensions
    this.#spec = spec
    this.#log = log
    this.#warn = warn
  }

  /**
   * The series of these label values, in the order of `labelNames`.
   * @param owner what it goes with: it is removed when the last of its owners is released
   */
  series(values: readonly string[], owner = SERVER): Series {
    const key = JSON.stringify(values)
    const owned = this.#owned.get(owner) ?? new Set()
    const known = this.#series.get(key)
    if (known !== undefined && owned.has(key)) return known.series
    if (owned.size >= MAX_SERIES) return this.#beyond()
    const series = known?.series ?? new Series(this.#spec, { names: this.labelNames, values }, this.#log)
    this.#series.set(key, { series, owners: (known?.owners ?? 0) + 1 })
    this.#owned.set(owner, owned.add(key))
    return series
  }

  /** Removes what nobody else owns. */
  release(owner: string): void {
    for (const key of this.#owned.get(owner) ?? []) {
      const one = this.#series.get(key)!
      one.owners -= 1
      if (one.owners > 0) continue
      one.series.close()
      this.#series.delete(key)
    }
    this.#owned.delete(owner)
  }

  get isEmpty(): boolean {
    return this.#series.size === 0
  }

  *samples(): Iterable<Sample> {
    for (const { series } of this.#series.values()) yield* series.samples()
  }

  #beyond(): Series {
    if (this.#overflow === undefined) {
      this.#overflow = new Series(this.#spec, { names: [], values: [] })
      this.#warn(
        `Metric ${this.name} has more than ${MAX_SERIES} sets of dimension values of one model; further ones are dropped`,
      )
    }
    return this.#overflow
  }
}

/** Samples of a histogram: cumulative buckets, sum and count. */
export function* distributionSamples(
  name: string,
  labels: string,
  { buckets, counts, sum }: Distribution,
): Iterable<Sample> {
  const bucketName = `${name}_bucket`
  let total = 0
  for (let bucket = 0; bucket < counts.length; bucket += 1) {
    total += counts[bucket]!
    yield { name: bucketName, labels: labels + buckets.labels[bucket]!, value: total }
  }
  yield { name: `${name}_count`, labels, value: total }
  yield { name: `${name}_sum`, labels, value: sum }
}
