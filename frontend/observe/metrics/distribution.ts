/** Upper bounds of our own histograms' buckets, in seconds. */
export const SECONDS = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120,
] as const

/** Upper bounds of the buckets of TorchServe's histograms, whatever their unit. */
export const TORCHSERVE_BOUNDS = [
  0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
] as const

/** A histogram as plain numbers: observing one value is a handful of comparisons. */
export class Distribution {
  readonly bounds: readonly number[]
  /** How many values fell into each bucket, not cumulative; the last is for what is above all bounds. */
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

  /** Takes in what another one with the same bounds has seen. */
  add(other: Distribution): void {
    other.counts.forEach((count, bucket) => {
      this.counts[bucket]! += count
    })
    this.sum += other.sum
  }
}
