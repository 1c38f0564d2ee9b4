import type { ReplyHead } from '../../jobs/reply-sink.ts'

/** Headers of every response, flat as `writeHead` takes them fastest: name, value, name, value. */
export function baseHeaders(requestId: string, keepAlive: boolean): string[] {
  return [
    'x-request-id',
    requestId,
    'Cache-Control',
    'no-cache',
    'connection',
    keepAlive ? 'keep-alive' : 'close',
  ]
}

/** Headers that a handler must not set: the server's own, and those for framing or the connection. */
const RESERVED: ReadonlySet<string> = new Set([
  'x-request-id',
  'pragma',
  'cache-control',
  'expires',
  'connection',
  'keep-alive',
  'proxy-connection',
  'content-length',
  'transfer-encoding',
  'te',
  'trailer',
  'upgrade',
  'ts_stream_next',
  'x-content-type-options',
])

const CONTENT_SECURITY_POLICY = 'content-security-policy'
/** A page that a handler sends may show text, styles and the images within it, and run nothing. */
const STILL_PAGE =
  "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; sandbox"
/** Media types that browsers run scripts of, also in a list: they take its last one. */
const PAGE = /html|xml/i

/**
 * Adds the handler's headers and the content type. A page has the policy that its handler sets, or else this
 * one; always this one on a listener that manages, because scripts of the page could manage, too.
 */
export function addHandlerHeaders(flat: string[], head: ReplyHead, manages: boolean): void {
  let isPage = head.contentType !== undefined && PAGE.test(head.contentType)
  let policy: string | undefined
  if (head.contentType !== undefined) flat.push('content-type', head.contentType)
  for (const [name, value] of Object.entries(head.headers)) {
    const lower = name.toLowerCase()
    if (RESERVED.has(lower) || (lower === 'content-type' && head.contentType !== undefined)) continue
    if (lower === CONTENT_SECURITY_POLICY) {
      policy = value
      continue
    }
    if (lower === 'content-type') isPage = PAGE.test(value)
    flat.push(name, value)
  }
  if (isPage && (manages || policy === undefined)) policy = STILL_PAGE
  if (policy !== undefined) flat.push(CONTENT_SECURITY_POLICY, policy)
}
