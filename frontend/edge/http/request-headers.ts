import type { IncomingMessage } from 'node:http'
import { headerLine } from '../../../common/header-lines.ts'
import { isReservedHeader } from '../../jobs/request-limits.ts'
import type { InferenceRoute } from '../../dialects/torchserve/rest-route.ts'

/**
 * The headers as the handler sees them (spec 1.6): names in the client's letter case, the last value of a repeated name, and what
 * the route adds, which no client can set itself.
 */
export function handlerHeaders(
  req: IncomingMessage,
  route: Pick<InferenceRoute, 'urlPath' | 'explain'>,
): string {
  let lines = joinRaw(req.rawHeaders)
  if (route.urlPath !== undefined) lines += headerLine('url_path', route.urlPath)
  if (route.explain !== undefined) lines += headerLine('explain', route.explain)
  return lines
}

/** Names and values alternate there as they do in the text; no value of HTTP/1.1 holds a line feed. */
function joinRaw(raw: readonly string[]): string {
  for (let i = 0; i < raw.length; i += 2) {
    if (isInjected(raw[i]!)) return joinRaw(withoutInjected(raw))
  }
  return raw.length === 0 ? '' : `${raw.join('\n')}\n`
}

function withoutInjected(raw: readonly string[]): string[] {
  return raw.filter((_text, i) => !isInjected(raw[i - (i % 2)]!))
}

function isInjected(name: string): boolean {
  if (name.length < 7 || name.length > 10) return false
  return isReservedHeader(name.toLowerCase())
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
