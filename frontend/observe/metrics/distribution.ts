/** Bucket bounds of this server's own histograms, in seconds. */
export const SECONDS = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120,
] as const

/** Bucket bounds of TorchServe's histograms, for every unit. */
export const TORCHSERVE_BOUNDS = [
  0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
] as const

/** A histogram as plain numbers, so that observing a value costs only a few comparisons. */
export class Distribution {
  readonly bounds: readonly number[]
  /** Number of values per bucket, not cumulative; the last bucket is above all bounds. */
  readonly counts: Float64Array
  sum = 0

  constructor(bounds: readonly number[] = SECONDS) {
    this.bounds = bounds
    this.counts = new Float64Array(bounds.length + 1)
  }

  observe(value: number): void {
    const { bounds } = this
    let bucket = 0
    while (bucket < bounds.length && value > bounds[bucket]!) bucket += 1
    this.counts[bucket]! += 1
    this.sum += value
  }

  get isEmpty(): boolean {
    return this.counts.every((count) => count === 0)
  }

  /** The values of both; the bounds must be the same. */
  plus(other: Distribution): Distribution {
    const both = new Distribution(this.bounds)
    this.counts.forEach((count, bucket) => {
      both.counts[bucket] = count + other.counts[bucket]!
    })
    both.sum = this.sum + other.sum
    return both
  }
}
