import type { IncomingMessage } from 'node:http'

/**
 * The client's headers (common/header-lines.ts), names in its letter case. Names and values alternate in
 * `rawHeaders` as they do in that text; no value of HTTP/1.1 holds a line feed.
 */
export function clientHeaders({ rawHeaders }: IncomingMessage): string {
  return rawHeaders.length === 0 ? '' : `${rawHeaders.join('\n')}\n`
}

/** The media type without its parameters; undefined when the client gave none. */
export function mediaType(contentType: string | undefined): string | undefined {
  if (contentType === undefined) return undefined
  const semicolon = contentType.indexOf(';')
  return semicolon === -1 ? contentType : contentType.slice(0, semicolon).trim()
}

/** Whether a body of at least one byte follows. */
export function hasBody(req: IncomingMessage): boolean {
  const length = req.headers['content-length']
  return length === undefined ? req.headers['transfer-encoding'] !== undefined : length !== '0'
}

/** What the client says that its body has, in bytes; Infinity: it does not say. */
export function declaredLength(req: IncomingMessage): number {
  return Number(req.headers['content-length'] ?? Infinity)
}

/** Whether the client says itself that its body is over the limit. */
export function declaresTooLarge(req: IncomingMessage, maxBytes: number): boolean {
  const length = declaredLength(req)
  return length !== Infinity && length > maxBytes
}
