import type { Histogram, ModelOverview, OverviewEvent } from '../common/server-events.ts'

/** Seconds that the charts show. */
export const WINDOW = 180

/** Sums over all models of one overview. */
interface Totals {
  at: number
  requests: number
  items: number
  firstResponse: Histogram
  gaps: Histogram
}

/** One second of the charts; null: nothing was measured. Times are milliseconds. */
export interface Point {
  at: number
  requestsPerSecond: number
  itemsPerSecond: number
  firstResponse: Quantiles
  gaps: Quantiles
}

export interface Quantiles {
  p50: number | null
  p99: number | null
}

/** What happened between the overviews, for the charts. */
export class History {
  readonly points: Point[] = []
  #last: Totals | undefined

  add(overview: OverviewEvent): void {
    const now = totalsOf(overview)
    const last = this.#last
    this.#last = now
    // After a restart, or when a model was unregistered, counts begin anew.
    if (last === undefined || now.at <= last.at || now.requests < last.requests || now.items < last.items)
      return
    const seconds = (now.at - last.at) / 1000
    this.points.push({
      at: now.at / 1000,
      requestsPerSecond: (now.requests - last.requests) / seconds,
      itemsPerSecond: (now.items - last.items) / seconds,
      firstResponse: quantilesOf(minus(now.firstResponse, last.firstResponse)),
      gaps: quantilesOf(minus(now.gaps, last.gaps)),
    })
    if (this.points.length > WINDOW) this.points.shift()
  }
}

function totalsOf({ at, models }: OverviewEvent): Totals {
  return {
    at: Date.parse(at),
    requests: models.reduce((sum, model) => sum + endedOf(model), 0),
    items: models.reduce((sum, { counts }) => sum + counts.items, 0),
    firstResponse: sumOf(models.map(({ times }) => times.firstResponse)),
    gaps: sumOf(models.map(({ times }) => times.gaps)),
  }
}

/** Requests of a version that have ended. */
export function endedOf({ counts: { unary, stream } }: ModelOverview): number {
  return [unary, stream].reduce(
    (sum, each) => Object.values<number>({ ...each }).reduce((all, count) => all + count, sum),
    0,
  )
}

const EMPTY: Histogram = { bounds: [], counts: [], sum: 0 }

function sumOf(histograms: readonly Histogram[]): Histogram {
  const [first, ...others] = histograms
  if (first === undefined) return EMPTY
  const counts = first.counts.map((count, bucket) =>
    others.reduce((sum, other) => sum + (other.counts[bucket] ?? 0), count),
  )
  return { bounds: first.bounds, counts, sum: others.reduce((sum, other) => sum + other.sum, first.sum) }
}

function minus(now: Histogram, last: Histogram): Histogram {
  const counts = now.counts.map((count, bucket) => Math.max(0, count - (last.counts[bucket] ?? 0)))
  return { bounds: now.bounds, counts, sum: now.sum - last.sum }
}

/** Median and 99th percentile in milliseconds. */
export function quantilesOf(histogram: Histogram): Quantiles {
  return { p50: quantileOf(histogram, 0.5), p99: quantileOf(histogram, 0.99) }
}

/**
 * A quantile of a histogram in seconds, in milliseconds; null: it is empty. As Prometheus does it: values are
 * spread evenly in their bucket, and those above all bounds count as the last one.
 */
export function quantileOf({ bounds, counts }: Histogram, quantile: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0) return null
  const wanted = quantile * total
  let below = 0
  for (const [bucket, count] of counts.entries()) {
    if (count > 0 && below + count >= wanted) {
      const upper = bounds[bucket]
      const lower = bucket === 0 ? 0 : bounds[bucket - 1]!
      return 1000 * (upper === undefined ? lower : lower + (upper - lower) * ((wanted - below) / count))
    }
    below += count
  }
  return 1000 * (bounds.at(-1) ?? 0)
}
