/** Upper bounds of the histogram's buckets, in seconds. */
export const BUCKETS = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120,
] as const

/** A histogram as plain numbers: observing one value is a handful of comparisons. */
export class Distribution {
  /** How many values fell into each bucket, not cumulative; the last is for what is above all bounds. */
  readonly counts = new Float64Array(BUCKETS.length + 1)
  sum = 0

  observe(seconds: number): void {
    let bucket = 0
    while (bucket < BUCKETS.length && seconds > BUCKETS[bucket]!) bucket += 1
    this.counts[bucket]! += 1
    this.sum += seconds
  }
}

/** How a request may end (frontend/models/job.ts). */
export type Outcome = 'finished' | 'failed' | 'cancelled' | 'timed_out'

/** What one label set of TorchServe's three request counters has summed up. */
export interface VersionTally {
  requests: number
  latencyMicroseconds: number
  queueMicroseconds: number
}

/**
 * What is counted for one model version while requests pass: plain fields, so that counting costs next to nothing. The
 * metrics page reads them when it is asked for.
 */
export class Tally {
  /** By the version that the client asked for; `default` when it named none. */
  readonly versions = new Map<string, VersionTally>()
  /** Ended requests by kind and outcome. */
  readonly endings = { stream: noEndings(), unary: noEndings() }
  readonly firstResponse = new Distribution()
  workerDeaths = 0

  version(asked: string | undefined): VersionTally {
    const key = asked ?? 'default'
    let tally = this.versions.get(key)
    if (tally === undefined) {
      tally = { requests: 0, latencyMicroseconds: 0, queueMicroseconds: 0 }
      this.versions.set(key, tally)
    }
    return tally
  }
}

function noEndings(): Record<Outcome, number> {
  return { finished: 0, failed: 0, cancelled: 0, timed_out: 0 }
}
