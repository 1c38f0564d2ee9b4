import { setOwn } from './json.ts'

/**
 * Request headers as they travel to the worker: one string of names and values, each followed by a line feed.
 * Most handlers never read headers, so the worker parses them only on demand. A map of strings would cost
 * both processes more than everything else in a small request.
 */
export function joinHeaders(headers: Readonly<Record<string, string>>): string {
  let lines = ''
  for (const [name, value] of Object.entries(headers)) lines += headerLine(name, value)
  return lines
}

/** One header in this format. */
export function headerLine(name: string, value: string): string {
  return `${name}\n${oneLine(value)}\n`
}

/** HTTP forbids line feeds in headers, but a decoded path (url_path) can contain one. */
function oneLine(value: string): string {
  return value.includes('\n') ? value.replaceAll('\n', ' ') : value
}

/** The value of a header, whatever the case of its name; the last of several. Undefined: there is none. */
export function headerValue(lines: string, name: string): string | undefined {
  const wanted = name.toLowerCase()
  const pieces = lines.split('\n')
  for (let i = pieces.length - 3; i >= 0; i -= 2) {
    const found = pieces[i]!
    if (found.length === wanted.length && found.toLowerCase() === wanted) return pieces[i + 1]
  }
  return undefined
}

/** The inverse of `joinHeaders`. The last value of a repeated name wins. */
export function splitHeaders(lines: string): Record<string, string> {
  const headers: Record<string, string> = {}
  const pieces = lines.split('\n')
  for (let i = 0; i + 1 < pieces.length; i += 2) setOwn(headers, pieces[i]!, pieces[i + 1]!)
  return headers
}

/**
 * Headers by which clients authenticate, to this server or to one in front of it, in lower case. Handlers get
 * them only if their model asks for them (docs/security.md).
 */
export const CREDENTIAL_HEADERS: ReadonlySet<string> = new Set([
  'authorization',
  'proxy-authorization',
  'cookie',
  'x-api-key',
  'api-key',
])

const LENGTHS = new Set([...CREDENTIAL_HEADERS].map((name) => name.length))

/** Compares lengths first: this runs for every header of every request. */
export function isCredentialHeader(name: string): boolean {
  return LENGTHS.has(name.length) && CREDENTIAL_HEADERS.has(name.toLowerCase())
}
