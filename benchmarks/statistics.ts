/** The middle value; the mean of the two middle ones of an even number. NaN of nothing. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

/** The value below which the share `q` (0 to 1) of all lies, interpolated. NaN of nothing. */
export function quantile(values: readonly number[], q: number): number {
  if (values.length === 0) return NaN
  const sorted = [...values].sort((a, b) => a - b)
  const place = (sorted.length - 1) * q
  const below = sorted[Math.floor(place)]!
  return below + (sorted[Math.ceil(place)]! - below) * (place - Math.floor(place))
}
