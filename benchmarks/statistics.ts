/** The median; the mean of the two middle values for an even number of them. NaN for none. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

/** The quantile `q` (0 to 1), interpolated. NaN for no values. */
export function quantile(values: readonly number[], q: number): number {
  if (values.length === 0) return NaN
  const sorted = [...values].sort((a, b) => a - b)
  const place = (sorted.length - 1) * q
  const below = sorted[Math.floor(place)]!
  return below + (sorted[Math.ceil(place)]! - below) * (place - Math.floor(place))
}

/** The probability of at least `heads` heads in `tosses` tosses of a fair coin. */
export function atLeastHeads(heads: number, tosses: number): number {
  let ways = 1 // of exactly `k` heads, as a share of all
  for (let i = 0; i < tosses; i++) ways /= 2
  let sum = 0
  for (let k = 0; k <= tosses; k++) {
    if (k >= heads) sum += ways
    ways *= (tosses - k) / (k + 1)
  }
  return sum
}
