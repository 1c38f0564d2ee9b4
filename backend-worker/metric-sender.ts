import { Allowance } from '../common/byte-flow.ts'
import type { MetricKind, MetricMessage, MetricSpec, WantedMetrics } from '../protocol/messages.ts'
import { type Outlet, sendMetric } from './outlet.ts'

/** Milliseconds: in a busy worker, values of one metric within this time leave in one message. */
const PAUSE_MS = 20
const BURST = 16
/**
 * Maximum values of a counter or gauge in one message. A further value is added to the last one (counter) or
 * replaces it (gauge).
 */
const MAX_VALUES = 4
/** Maximum waiting values of a histogram. Then they are sent at once, because none may be lost. */
const MAX_HISTOGRAM_VALUES = 256
/** Maximum sets of dimensions that are kept. Values of further ones are sent at once. */
const MAX_SERIES = 1_000

/** The waiting values of one metric with one set of dimensions. */
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

  /** `requestIds` as one string, separated by commas. */
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

  /** Returns the waiting values and removes them. */
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
 * Sends metrics at almost no cost per request: a quiet worker sends them before the response of their batch,
 * a busy one every 20 ms.
 */
export class MetricSender {
  readonly #outlet: Outlet
  readonly #wanted: WantedMetrics | undefined
  readonly #declared: ReadonlyMap<string, MetricKind>
  readonly #series = new Map<string, MetricSeries>()
  readonly #flushes = new Allowance(PAUSE_MS, BURST)
  #waiting: MetricSeries[] = []
  #timer: NodeJS.Timeout | undefined

  /** Without `wanted` everything that the handler reports is sent, at once. */
  constructor(outlet: Outlet, wanted?: WantedMetrics) {
    this.#outlet = outlet
    this.#wanted = wanted
    this.#declared = new Map(wanted?.declared.map(({ name, kind }) => [name, kind]))
  }

  /** Whether the frontend needs metrics with this name. */
  wants(name: string): boolean {
    return this.#wanted === undefined || this.#wanted.others || this.#declared.has(name)
  }

  /** The same for metrics that the worker reports by itself. */
  wantsTimes(name: string): boolean {
    return this.#wanted !== undefined && this.wants(name)
  }

  /** A declaration determines the kind. */
  series(name: string, asked: MetricKind, unit: string, dimensions: Record<string, string>): MetricSeries {
    const kind = this.#declared.get(name) ?? asked
    const key = JSON.stringify([name, kind, unit, dimensions])
    const known = this.#series.get(key)
    if (known !== undefined) return known
    const series = new MetricSeries(this, { name, kind, unit }, dimensions)
    if (this.#series.size < MAX_SERIES) this.#series.set(key, series)
    return series
  }

  /** Called when the first value of a series waits. */
  waits(series: MetricSeries): void {
    this.#waiting.push(series)
    if (this.#wanted === undefined) this.flush()
    else this.#timer ??= setTimeout(() => this.flush(), PAUSE_MS).unref()
  }

  /** Before a batch is answered: sends its metrics, unless that happened often recently. */
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
