import type { RequestErrors } from '../../../common/server-events.ts'
import { labelText, number } from './sample.ts'

/** The buckets of a histogram. */
export class Buckets {
  /** Upper bounds, rising; the last bucket is above all of them. */
  readonly bounds: readonly number[]
  /** The label `le` of each bucket. */
  readonly labels: readonly string[]

  constructor(...bounds: number[]) {
    this.bounds = bounds
    this.labels = [...bounds, Infinity].map((bound) => labelText(['le'], [number(bound)]))
  }
}

/** Of this server's own histograms, in seconds. */
const SECONDS = new Buckets(
  0.001,
  0.0025,
  0.005,
  0.01,
  0.025,
  0.05,
  0.1,
  0.25,
  0.5,
  1,
  2.5,
  5,
  10,
  30,
  60,
  120,
)

/** Of TorchServe's histograms, for every unit. */
export const TORCHSERVE_BUCKETS = new Buckets(
  0.005,
  0.01,
  0.025,
  0.05,
  0.075,
  0.1,
  0.25,
  0.5,
  0.75,
  1,
  2.5,
  5,
  7.5,
  10,
)

/** A histogram as plain numbers, so that observing a value costs only a few comparisons. */
export class Distribution {
  readonly buckets: Buckets
  /** Number of values per bucket, not cumulative. */
  readonly counts: Float64Array
  sum = 0

  constructor(buckets = SECONDS) {
    this.buckets = buckets
    this.counts = new Float64Array(buckets.labels.length)
  }

  observe(value: number): void {
    const { bounds } = this.buckets
    let bucket = 0
    while (bucket < bounds.length && value > bounds[bucket]!) bucket += 1
    this.counts[bucket]! += 1
    this.sum += value
  }

  get isEmpty(): boolean {
    return this.counts.every((count) => count === 0)
  }

  /** The values of both; the buckets must be the same. */
  plus(other: Distribution): Distribution {
    const both = new Distribution(this.buckets)
    this.counts.forEach((count, bucket) => {
      both.counts[bucket] = count + other.counts[bucket]!
    })
    both.sum = this.sum + other.sum
    return both
  }
}

/** Outcome of a request. `client_stalled`: a time limit passed while the handler waited for the client. */
export type Outcome = 'finished' | 'failed' | 'cancelled' | 'timed_out' | 'client_stalled'

/** This server's own metrics separate streams from unary answers. */
export type RequestKind = 'stream' | 'unary'

/** Counts of one kind of request. Times are in seconds. */
export class KindTally {
  readonly endings: Record<Outcome, number> = {
    finished: 0,
    failed: 0,
    cancelled: 0,
    timed_out: 0,
    client_stalled: 0,
  }
  /** From arrival until a worker takes the request, or until it ends without one. */
  readonly queue = new Distribution()
  /** From arrival to the first response. */
  readonly firstResponse = new Distribution()
  /** From arrival to the end. */
  readonly whole = new Distribution()
}

/** Counts of one model version. Plain fields keep counting cheap; the metrics page reads them on demand. */
export class Tally {
  readonly kinds: Readonly<Record<RequestKind, KindTally>> = {
    stream: new KindTally(),
    unary: new KindTally(),
  }
  /** Between two responses of a stream. */
  readonly gaps = new Distribution()
  /** From the start of a worker until its handler has loaded. */
  readonly workerStart = new Distribution()
  /** From a request to a model without workers until a worker has loaded the handler. */
  readonly wake = new Distribution()
  /** Responses of requests that have ended, and their bytes: each item of a stream is one. */
  items = 0
  bytes = 0
  workerDeaths = 0
  /** Requests that weights sent to the version; undefined: none. */
  routed: number | undefined
  discardedResponses = 0

  /** Requests that failed or timed out since the last one that finished. */
  failedInARow = 0
  /** The same since the start, by error code: the codes are a closed list. */
  readonly errors = new Map<string, RequestErrors>()

  /** Number of requests that have ended. */
  get ended(): number {
    let count = 0
    for (const { endings } of [this.kinds.stream, this.kinds.unary])
      for (const ended of Object.values(endings)) count += ended
    return count
  }
}
