import { createHash } from 'node:crypto'

/** One of those between which weights choose. */
export interface Weighted {
  readonly version: string
  /** A whole number; 0: never chosen. */
  readonly weight: number
  /** How far it is behind its share: whole numbers, so that nothing drifts. Changed by `nextByTurn`. */
  due: number
}

/**
 * The next by turn (smooth weighted round robin). Every stretch of requests has each share to within about
 * one request, at 1 % as at 50 %. A random draw would need thousands of requests to come as close, would send
 * bursts to a canary with few workers, and tests could not count on it.
 * @returns undefined when none has a weight above 0
 */
export function nextByTurn<Item extends Weighted>(items: readonly Item[]): Item | undefined {
  let total = 0
  let next: Item | undefined
  for (const item of items) {
    if (item.weight === 0) continue
    total += item.weight
    item.due += item.weight
    if (next === undefined || item.due > next.due) next = item
  }
  if (next !== undefined) next.due -= total
  return next
}

/**
 * The same for the same value (weighted rendezvous hashing): each version draws a number from the hash of the
 * value and its own name, and the best draw wins. A new weight moves only values to or from that version.
 * @param salt keeps the values of different models apart
 * @returns undefined when none has a weight above 0
 */
export function alwaysFor<Item extends Weighted>(
  value: string,
  items: readonly Item[],
  salt: string,
): Item | undefined {
  let best: Item | undefined
  let most = -Infinity
  for (const item of items) {
    if (item.weight === 0) continue
    const score = item.weight / -Math.log(fraction(value, item.version, salt))
    if (score > most) {
      best = item
      most = score
    }
  }
  return best
}

/** Above 0 and below 1, from 48 bits of a hash: the value itself is kept nowhere. */
function fraction(value: string, version: string, salt: string): number {
  const hash = createHash('sha256')
    .update(JSON.stringify([salt, version, value]))
    .digest()
  return (hash.readUIntBE(0, 6) + 0.5) / 2 ** 48
}
