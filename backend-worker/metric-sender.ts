import { Allowance } from '../common/allowance.ts'
import type { MetricKind, MetricMessage, MetricSpec, WantedMetrics } from '../protocol/messages.ts'
import { type Outlet, sendMetric } from './outlet.ts'

/** In a busy worker, values of one metric that come closer together than this leave in one message. */
const PAUSE_MS = 20
const BURST = 16
/** Values of a counter or gauge that one message holds; what comes beyond is added to the last one, or takes its place. */
const MAX_VALUES = 4
/** Values of a histogram that wait; then they leave at once, for none may be lost. */
const MAX_HISTOGRAM_VALUES = 256
/** Sets of dimensions that are kept; further ones leave each value at once. */
const MAX_SERIES = 1_000

/** The values of one metric with one set of dimensions that have not left yet. */
export class MetricSeries {
  readonly spec: Omit<MetricSpec, 'dimensions'>
  readonly dimensions: Readonly<Record<string, string>>
  readonly #sender: MetricSender
  #values: number[] = []
  #requestIds: string[] = []

  constructor(
    sender: MetricSender,
    spec: Omit<MetricSpec, 'dimensions'>,
    dimensions: Readonly<Record<string, string>>,
  ) {
    this.#sender = sender
    this.spec = spec
    this.dimensions = dimensions
  }

  /** `requestIds` as one text, divided by commas. */
  add(value: number, requestIds: string): void {
    const last = this.#values.length - 1
    const { kind } = this.spec
    if (kind === 'histogram' || last + 1 < MAX_VALUES) {
      this.#values.push(value)
      this.#requestIds.push(requestIds)
    } else {
      this.#values[last] = kind === 'counter' ? this.#values[last]! + value : value
      this.#requestIds[last] = requestIds
    }
    if (last === -1) this.#sender.waits(this)
    else if (last + 2 >= MAX_HISTOGRAM_VALUES) this.#sender.flush()
  }

  /** What has not left yet, which is taken. */
  take(): MetricMessage {
    const { name, kind, unit } = this.spec
    const message: MetricMessage = {
      type: 'metric',
      name,
      kind,
      unit,
      dimensions: this.dimensions,
      values: this.#values,
      requestIds: this.#requestIds,
    }
    this.#values = []
    this.#requestIds = []
    return message
  }
}

/**
 * Sends metrics to the frontend so that they cost next to nothing per request: those of a quiet worker leave before the answer of
 * their batch, those of a busy one every 20 ms.
 */
export class MetricSender {
  readonly #outlet: Outlet
  readonly #wanted: WantedMetrics | undefined
  readonly #declared: ReadonlyMap<string, MetricKind>
  readonly #series = new Map<string, MetricSeries>()
  readonly #flushes = new Allowance(PAUSE_MS, BURST)
  #waiting: MetricSeries[] = []
  #timer: NodeJS.Timeout | undefined

  /** Without `wanted` everything is that the handler reports, and nothing waits. */
  constructor(outlet: Outlet, wanted?: WantedMetrics) {
    this.#outlet = outlet
    this.#wanted = wanted
    this.#declared = new Map(wanted?.declared.map(({ name, kind }) => [name, kind]))
  }

  /** Whether anybody wants metrics of this name. */
  wants(name: string): boolean {
    return this.#wanted === undefined || this.#wanted.others || this.#declared.has(name)
  }

  /** The same for what the worker reports unasked. */
  wantsTimes(name: string): boolean {
    return this.#wanted !== undefined && this.wants(name)
  }

  /** A declaration decides the kind. */
  series(name: string, asked: MetricKind, unit: string, dimensions: Record<string, string>): MetricSeries {
    const kind = this.#declared.get(name) ?? asked
    const key = JSON.stringify([name, kind, unit, dimensions])
    const known = this.#series.get(key)
    if (known !== undefined) return known
    const series = new MetricSeries(this, { name, kind, unit }, dimensions)
    if (this.#series.size < MAX_SERIES) this.#series.set(key, series)
    return series
  }

  /** The series has its first value that waits. */
  waits(series: MetricSeries): void {
    this.#waiting.push(series)
    if (this.#wanted === undefined) this.flush()
    else this.#timer ??= setTimeout(() => this.flush(), PAUSE_MS).unref()
  }

  /** A batch is about to be answered: what it reported leaves before, unless that was done often lately. */
  answering(): void {
    if (this.#waiting.length > 0 && this.#flushes.wait === 0) this.flush()
  }

  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#flushes.use()
    const waiting = this.#waiting
    this.#waiting = []
    for (const series of waiting) sendMetric(this.#outlet, series.take())
  }
}
