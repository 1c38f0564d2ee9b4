import { atLeastHeads, median } from '../statistics.ts'

/** Least ratio to the state before: a drop of more than 40 % fails. */
export const LEAST = 0.6

/** How rarely rounds may differ by chance as much as those that make a case fail. */
const CHANCE = 0.01

/** `noisy`: the median is too low, but the rounds differ too much to blame the change. */
export type Verdict = 'kept' | 'dropped' | 'noisy'

/**
 * What the ratios of a case's rounds say. It has dropped when the median rate is below LEAST, and so are more
 * rounds than chance puts on one side of a median (a sign test). Beside heavy work rates differ too much for
 * that, and CPU time tells: the same test of the requests per second of CPU time is proof as well.
 */
export function verdict(rates: readonly number[], perCpuTime: readonly number[]): Verdict {
  if (median(rates) >= LEAST) return 'kept'
  return isBelow(rates) || isBelow(perCpuTime) ? 'dropped' : 'noisy'
}

function isBelow(ratios: readonly number[]): boolean {
  const below = ratios.filter((ratio) => ratio < LEAST).length
  return atLeastHeads(below, ratios.length) < CHANCE
}
