import type { MetricKind } from '../../../protocol/messages.ts'
import { localTime } from '../logs/clock.ts'
import { escapeControls } from '../../../common/texts.ts'
import type { LineWriter } from '../logs/log-file.ts'
import { number } from './page.ts'

/** Lines per second that one metric with one set of dimensions may write; one more sums up the rest. */
export const LINES_PER_SECOND = 100

/** Null: a handler's metric of no request, logged as `requestID:null`. Undefined: a metric of the server. */
type RequestIds = string | null | undefined

/** A log file of metrics. Bounds its volume at any request rate. */
export class MetricLines {
  readonly #writer: LineWriter
  readonly #series = new Set<LineSeries>()
  #timer: NodeJS.Timeout | undefined

  constructor(writer: LineWriter) {
    this.#writer = writer
  }

  /** The last dimension is the host name. */
  series(
    name: string,
    unit: string,
    kind: MetricKind,
    dimensions: readonly string[],
    values: readonly string[],
  ): LineSeries {
    const pairs = dimensions.slice(0, -1).map((dimension, index) => `${dimension}:${values[index]!}`)
    const series = new LineSeries(this, kind === 'counter', {
      head: ` - ${escapeControls(`${name}.${unit}`)}:`,
      tail: `|#${escapeControls(pairs.join(','))}|#hostname:${escapeControls(values.at(-1) ?? '')}`,
    })
    this.#series.add(series)
    return series
  }

  remove(series: LineSeries): void {
    this.#series.delete(series)
  }

  write(head: string, value: number, tail: string, requestIds: RequestIds): void {
    const now = Date.now()
    const ids = requestIds === undefined ? '' : `,requestID:${escapeControls(requestIds ?? 'null')}`
    const seconds = Math.floor(now / 1000)
    this.#writer.write(`${localTime(now)}${head}${number(value)}${tail}${ids},timestamp:${seconds}\n`)
    this.#timer ??= setInterval(() => this.flush(), 1000).unref()
  }

  /** Writes what was held back. Runs by itself every second. */
  flush(): void {
    for (const series of this.#series) series.flush()
  }

  close(): void {
    this.flush()
    clearInterval(this.#timer)
  }
}

/**
 * The lines of one metric with one set of dimensions: one per value, up to the limit. Beyond it, a counter's
 * values are added up, and of other metrics the last value is kept, as on the metrics page.
 */
export class LineSeries {
  readonly #lines: MetricLines
  readonly #adds: boolean
  readonly #text: { head: string; tail: string }
  #left = LINES_PER_SECOND
  #held: number | undefined
  #heldIds: RequestIds

  constructor(lines: MetricLines, adds: boolean, text: { head: string; tail: string }) {
    this.#lines = lines
    this.#adds = adds
    this.#text = text
  }

  record(value: number, requestIds: RequestIds): void {
    if (this.#left > 0) {
      this.#left -= 1
      this.#lines.write(this.#text.head, value, this.#text.tail, requestIds)
    } else {
      this.#held = this.#adds && this.#held !== undefined ? this.#held + value : value
      this.#heldIds = requestIds
    }
  }

  close(): void {
    this.flush()
    this.#lines.remove(this)
  }

  flush(): void {
    this.#left = LINES_PER_SECOND
    if (this.#held === undefined) return
    this.#lines.write(this.#text.head, this.#held, this.#text.tail, this.#heldIds)
    this.#held = undefined
  }
}
