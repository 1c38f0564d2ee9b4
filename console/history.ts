import type { Histogram, ModelOverview, OverviewEvent } from '../common/server-events.ts'

/** Seconds that the charts show. */
export const WINDOW = 180
/** Seconds that the numbers of the table of models are about. */
const RECENT = 60

/** Counts of a model, or of all. Histograms are in seconds. */
interface Totals {
  requests: number
  failures: number
  items: number
  firstResponse: Histogram
  gaps: Histogram
}

/** What happened between two overviews; null: nothing was measured. Times are milliseconds. */
export interface Activity {
  requests: number
  failures: number
  requestsPerSecond: number
  failuresPerSecond: number
  itemsPerSecond: number
  firstResponse: Quantiles
  gaps: Quantiles
}

/** One second of the charts, in seconds since the epoch. */
export interface Point extends Activity {
  at: number
}

export interface Quantiles {
  p50: number | null
  p99: number | null
}

interface Kept {
  at: number
  models: ReadonlyMap<string, Totals>
}

/** What happened between the overviews, for the charts and for each model. */
export class History {
  readonly points: Point[] = []
  #kept: Kept[] = []

  add({ at, models }: OverviewEvent): void {
    const now: Kept = {
      at: Date.parse(at),
      models: new Map(models.map((each) => [keyOf(each), totalsOf(each)])),
    }
    const last = this.#kept.at(-1)
    if (last !== undefined && now.at <= last.at) this.#kept = []
    const activity = last && between(sumOf(last), last.at, sumOf(now), now.at)
    if (activity !== undefined) this.points.push({ at: now.at / 1000, ...activity })
    if (this.points.length > WINDOW) this.points.shift()
    this.#kept.push(now)
    while (now.at - this.#kept[0]!.at > RECENT * 1000) this.#kept.shift()
  }

  /** What a model did in the last minute, or since the page knows it; undefined: too little is known. */
  recent(model: ModelOverview): Activity | undefined {
    const key = keyOf(model)
    const last = this.#kept.at(-1)
    const now = last?.models.get(key)
    if (last === undefined || now === undefined) return undefined
    for (const { at, models } of this.#kept) {
      const then = models.get(key)
      const activity = then && between(then, at, now, last.at)
      if (activity !== undefined) return activity
    }
    return undefined
  }
}

/** What a version is called in links and lists of the page. */
export function keyOf({
  modelName,
  modelVersion = '',
}: {
  modelName: string
  modelVersion?: string
}): string {
  return `${modelName} ${modelVersion}`.trim()
}

/** Undefined: no time has passed, or counts began anew after a restart or when a model was unregistered. */
function between(then: Totals, from: number, now: Totals, to: number): Activity | undefined {
  const seconds = (to - from) / 1000
  const requests = now.requests - then.requests
  const failures = now.failures - then.failures
  const items = now.items - then.items
  if (seconds <= 0 || requests < 0 || failures < 0 || items < 0) return undefined
  return {
    requests,
    failures,
    requestsPerSecond: requests / seconds,
    failuresPerSecond: failures / seconds,
    itemsPerSecond: items / seconds,
    firstResponse: quantilesOf(minus(now.firstResponse, then.firstResponse)),
    gaps: quantilesOf(minus(now.gaps, then.gaps)),
  }
}

function totalsOf(model: ModelOverview): Totals {
  const { counts, times } = model
  const { firstResponse, gaps } = times
  return { requests: endedOf(model), failures: failuresOf(model), items: counts.items, firstResponse, gaps }
}

function sumOf({ models }: Kept): Totals {
  const all = [...models.values()]
  const sum = (of: (each: Totals) => number): number => all.reduce((total, each) => total + of(each), 0)
  return {
    requests: sum(({ requests }) => requests),
    failures: sum(({ failures }) => failures),
    items: sum(({ items }) => items),
    firstResponse: allOf(all.map(({ firstResponse }) => firstResponse)),
    gaps: allOf(all.map(({ gaps }) => gaps)),
  }
}

/** Requests of a version that have ended. */
function endedOf({ counts: { unary, stream } }: ModelOverview): number {
  return [unary, stream].reduce(
    (sum, each) => Object.values<number>({ ...each }).reduce((all, count) => all + count, sum),
    0,
  )
}

/** Requests of a version that failed or timed out. */
export function failuresOf({ counts: { unary, stream } }: ModelOverview): number {
  return unary.failed + unary.timed_out + stream.failed + stream.timed_out
}

const EMPTY: Histogram = { bounds: [], counts: [], sum: 0 }

function allOf(histograms: readonly Histogram[]): Histogram {
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
function quantileOf({ bounds, counts }: Histogram, quantile: number): number | null {
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
