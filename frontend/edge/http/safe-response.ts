import {
  type IncomingMessage,
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
  ServerResponse,
} from 'node:http'
import type { RequestSpan } from '../../observe/traces/tracing.ts'
import type { ReplyHead } from '../../jobs/reply-sink.ts'

/** Keeps browsers from taking an answer for anything but its content type. */
export const NO_SNIFF = ['x-content-type-options', 'nosniff'] as const

type Headers = OutgoingHttpHeaders | OutgoingHttpHeader[]

/**
 * Every response of the REST listeners. Headers of all answers are added here, and not where heads are made,
 * so that Koa's answers, and those that Node writes by itself, have them too.
 */
export class SafeResponse<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
  /** Undefined: the request is not traced. It ends with the response. */
  span: Pick<RequestSpan, 'traceparent' | 'recording' | 'set' | 'end'> | undefined = undefined

  /** The span ends here, because a listener of its own would cost as much as half of what it records. */
  override emit(name: string | symbol, ...args: unknown[]): boolean {
    if (name === 'close' && this.span?.recording === true) this.#end(this.span)
    return super.emit(name, ...args)
  }

  override writeHead(status: number, reason?: string | Headers, headers?: Headers): this {
    const given = headers ?? reason
    this.#add(given, NO_SNIFF[0], NO_SNIFF[1])
    const { span } = this
    // Of a request that is not recorded there is no trace to find, but an error has its id in the logs.
    if (span !== undefined && (span.recording || status >= 400))
      this.#add(given, 'traceresponse', span.traceparent)
    return super.writeHead(status, reason as string, headers)
  }

  #end(span: Pick<RequestSpan, 'set' | 'end'>): void {
    const { statusCode, headersSent, writableFinished } = this
    span.set([
      'http.response.status_code',
      headersSent ? statusCode : undefined,
      'torchserve_ts.response.complete',
      writableFinished ? undefined : false,
      'error.type',
      statusCode >= 500 ? String(statusCode) : undefined,
    ])
    span.end(headersSent && statusCode >= 500)
  }

  /** To the given head if it is a list: a header that was set before would cost a merge of both. */
  #add(given: string | Headers | undefined, name: string, value: string): void {
    if (Array.isArray(given)) given.push(name, value)
    else this.setHeader(name, value)
  }
}

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
