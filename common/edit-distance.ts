/**
 * Damerau-Levenshtein distance: insertions, deletions, replacements and swaps of adjacent letters.
 * @param limit a distance that is at least this large may be answered as this
 */
export function editDistance(a: string, b: string, limit = Infinity): number {
  let beforePrevious: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1]
      let best = Math.min(
        previous[column]! + 1,
        current[column - 1]! + 1,
        previous[column - 1]! + (same ? 0 : 1),
      )
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) {
        best = Math.min(best, beforePrevious[column - 2]! + 1)
      }
      current.push(best)
    }
    // A swap looks two rows back, so two rows have to be beyond the limit.
    if (Math.min(...current) >= limit && Math.min(...previous) >= limit) return limit
    beforePrevious = previous
    previous = current
  }
  return previous[b.length]!
}

/**
 * The closest candidate.
 * @param most distance of it, default 2; 1 below 8 letters, 0 below 4
 */
export function closest(
  text: string,
  candidates: Iterable<string>,
  most = Math.min(2, Math.floor(text.length / 4)),
): string | undefined {
  let found: string | undefined
  let least = most + 1
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - text.length) >= least) continue
    const distance = editDistance(text.toLowerCase(), candidate.toLowerCase(), least)
    if (distance < least) {
      least = distance
      found = candidate
    }
  }
  return found
}
