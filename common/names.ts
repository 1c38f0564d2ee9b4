import { quoted } from './texts.ts'

/** The one rule for what models, versions, workflows and downloaded archives may be called. */

const MAX_NAME = 128
const NAME = /^[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,127}$/

/** The rule as a sentence's end, for messages and documentation. */
export const NAME_RULE =
  `have 1 to ${MAX_NAME} ASCII letters, digits and _ - . + @, start with a letter, a digit or _, ` +
  'have no two dots in a row, and not be __proto__'

/**
 * Whether a text may be the name of a model, a version or a workflow. A name that passes is one part of a
 * path on every system, needs no escaping in a URL's path, a log line or a metric's label, and is no
 * special key of an object.
 */
export function isName(text: string): boolean {
  return NAME.test(text) && !text.includes('..') && text !== '__proto__'
}

/** The items of a comma-separated list, without blanks around them. */
export function splitList(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
}

/**
 * What is wrong with a name, as a whole sentence; undefined: nothing.
 * @param what it names, at the beginning of the sentence: `Model name`
 */
export function nameProblem(what: string, text: string): string | undefined {
  return isName(text) ? undefined : `${what} ${quoted(text, 60)} must ${NAME_RULE}.`
}

/**
 * Damerau-Levenshtein distance: insertions, deletions, replacements and swaps of adjacent letters.
 */
export function editDistance(a: string, b: string): number {
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
    const distance = editDistance(text.toLowerCase(), candidate.toLowerCase())
    if (distance < least) {
      least = distance
      found = candidate
    }
  }
  return found
}
