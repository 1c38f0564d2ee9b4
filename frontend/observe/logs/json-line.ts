/** Longest text of a JSON line, in characters; the rest of it is cut off. */
const MAX_TEXT = 2_000

/** One line of JSON lines, with its line end. */
export function jsonLine(value: object): string {
  const json = JSON.stringify(value, (_key, each: unknown) =>
    typeof each === 'string' && each.length > MAX_TEXT ? `${each.slice(0, MAX_TEXT)}...` : each,
  )
  return `${plainJson(json)}\n`
}

/**
 * JSON escapes only what is below a blank; everything else that ends a line somewhere or moves a terminal's
 * cursor is escaped too.
 */
export function plainJson(json: string): string {
  return json.replace(
    /[\u007f-\u009f\u2028\u2029]/g,
    (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
