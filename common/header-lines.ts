import { setOwn } from './own-keys.ts'

/**
 * Request headers as they travel to the worker: one text of names and values, each followed by a line feed. Most handlers
 * never look at them, so a worker takes them apart only when asked; a map of strings would cost both processes more than
 * all else in a small request.
 */
export function joinHeaders(headers: Readonly<Record<string, string>>): string {
  let lines = ''
  for (const [name, value] of Object.entries(headers)) lines += headerLine(name, value)
  return lines
}

/** One header of such a text. */
export function headerLine(name: string, value: string): string {
  return `${name}\n${oneLine(value)}\n`
}

/** A header of HTTP cannot hold a line feed, a decoded path (url_path) can. */
function oneLine(value: string): string {
  return value.includes('\n') ? value.replaceAll('\n', ' ') : value
}

/** What `joinHeaders` was given. Of a repeated name the last value counts. */
export function splitHeaders(lines: string): Record<string, string> {
  const headers: Record<string, string> = {}
  const pieces = lines.split('\n')
  for (let i = 0; i + 1 < pieces.length; i += 2) setOwn(headers, pieces[i]!, pieces[i + 1]!)
  return headers
}
