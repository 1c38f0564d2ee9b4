import { quantile } from '../statistics.ts'
import type { Figure } from './figure.ts'

/** Of each distribution. */
export const LATENCY_SAMPLES = 50

/** Milliseconds that half and nine tenths of the samples may take. */
export interface LatencyLimits {
  readonly p50: number
  readonly p90: number
}

/** Median, p90 and greatest of some latencies; the first two have limits. */
export function distribution(
  measure: string,
  name: string,
  milliseconds: readonly number[],
  { p50, p90 }: LatencyLimits,
): Figure[] {
  const figure = (what: string, q: number, atMost?: number): Figure => ({
    measure,
    name: `${name}, ${what} of ${milliseconds.length}`,
    value: quantile(milliseconds, q),
    unit: 'ms',
    atMost,
  })
  return [figure('p50', 0.5, p50), figure('p90', 0.9, p90), figure('max', 1)]
}
