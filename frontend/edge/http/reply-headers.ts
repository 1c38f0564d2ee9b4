import type { ReplyHead } from '../../jobs/reply-sink.ts'

/** The headers of every response (spec 1.1), flat as `writeHead` takes them fastest: name, value, name, value. */
export function commonHeaders(requestId: string, keepAlive: boolean): string[] {
  return [
    'x-request-id',
    requestId,
    'Pragma',
    'no-cache',
    'Cache-Control',
    'no-cache; no-store, must-revalidate, private',
    'Expires',
    'Thu, 01 Jan 1970 00:00:00 UTC',
    'connection',
    keepAlive ? 'keep-alive' : 'close',
  ]
}

/** The headers of every response of the other dialects (Open Inference, OpenAI), flat as well. */
export function dialectHeaders(requestId: string, keepAlive: boolean): string[] {
  return [
    'x-request-id',
    requestId,
    'Cache-Control',
    'no-cache',
    'connection',
    keepAlive ? 'keep-alive' : 'close',
  ]
}

/** What a handler may not set: our own headers, and those that frame the message or govern the connection. */
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
])

/** Adds the handler's headers and the content type. */
export function addHandlerHeaders(flat: string[], head: ReplyHead): void {
  if (head.contentType !== undefined) flat.push('content-type', head.contentType)
  for (const [name, value] of Object.entries(head.headers)) {
    const lower = name.toLowerCase()
    if (RESERVED.has(lower) || (lower === 'content-type' && head.contentType !== undefined)) continue
    flat.push(name, value)
  }
}

/** Adds the CORS headers that the handler has not set itself. */
export function addCors(flat: string[], cors: readonly string[], head: ReplyHead): void {
  for (let i = 0; i < cors.length; i += 2) {
    const name = cors[i]!
    if (!hasHeader(head.headers, name)) flat.push(name, cors[i + 1]!)
  }
}

function hasHeader(headers: Readonly<Record<string, string>>, lowerName: string): boolean {
  for (const name in headers) if (name.toLowerCase() === lowerName) return true
  return false
}
