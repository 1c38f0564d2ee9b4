import { ServeError } from '../../../common/errors.ts'
import type { IncomingMessage } from 'node:http'
import { isCredentialHeader } from '../../../common/headers.ts'

/** A request target, parsed as in TorchServe: first decoded, then split. Slashes at the end are ignored. */
export interface Target {
  /** `/predictions/m/` gives `['predictions', 'm']`. */
  readonly segments: readonly string[]
  /** The query after the `?`; empty if there is none. */
  readonly query: string
  /** The host and port of a target that is a whole URL; undefined: it is none. */
  readonly authority?: string | undefined
  /** INVALID_ARGUMENT if the path is not valid percent-encoding; there are no segments then. */
  readonly error?: ServeError
}

/** Recently parsed targets, because clients repeat the same few. */
const seen = new Map<string, Target>()
const MAX_SEEN = 500
const MAX_SEEN_LENGTH = 256

/** Parses a request target. Equal targets share one object. */
export function targetOf(url: string): Target {
  const known = seen.get(url)
  if (known !== undefined) return known
  const target = parse(url)
  if (seen.size >= MAX_SEEN) seen.clear()
  if (url.length < MAX_SEEN_LENGTH) seen.set(url, target)
  return target
}

function parse(url: string): Target {
  const [target, authority] = url.charCodeAt(0) === 0x2f ? [url] : originForm(url)
  const mark = target.indexOf('?')
  const query = mark === -1 ? '' : target.slice(mark + 1)
  const rest = authority === undefined ? { query } : { query, authority }
  try {
    return { segments: segmentsOf(mark === -1 ? target : target.slice(0, mark)), ...rest }
  } catch (cause) {
    const error = new ServeError('INVALID_ARGUMENT', 'The path is not valid percent-encoding.', { cause })
    return { segments: [], ...rest, error }
  }
}

/** @throws URIError when a percent sign is not followed by two hex digits */
function segmentsOf(path: string): string[] {
  const decoded = path.includes('%') ? decodeURIComponent(path) : path
  const segments = decoded.split('/')
  segments.shift()
  while (segments.length > 0 && segments[segments.length - 1] === '') segments.pop()
  return segments
}

/** Proxies may send the whole URL: path and query, and the authority before them. */
function originForm(url: string): [target: string, authority?: string] {
  const [before = '', authority] = /^[a-z][a-z0-9+.-]*:\/\/([^/?]*)/i.exec(url) ?? []
  const rest = url.slice(before.length)
  return [rest.startsWith('/') ? rest : `/${rest}`, authority]
}

/** The headers of a request, in the format of common/headers.ts. */
export interface ClientHeaders {
  readonly headers: string
  /** Those with credentials; undefined: none. */
  readonly credentials: string | undefined
}

/**
 * The client's headers in the format of common/headers.ts, with names as the client wrote them.
 * `rawHeaders` alternates names and values too, and no HTTP/1.1 value contains a line feed.
 */
export function clientHeaders({ rawHeaders }: IncomingMessage): ClientHeaders {
  let headers = ''
  let credentials: string | undefined
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const line = `${rawHeaders[i]!}\n${rawHeaders[i + 1]!}\n`
    if (isCredentialHeader(rawHeaders[i]!)) credentials = (credentials ?? '') + line
    else headers += line
  }
  return { headers, credentials }
}

/**
 * Refuses what a proxy in front may have read in another way: Node keeps the first of two Host or
 * Authorization headers, others the last. @throws ServeError INVALID_ARGUMENT
 */
export function checkHead({ rawHeaders, httpVersionMajor, httpVersionMinor }: IncomingMessage): void {
  let hosts = 0
  let authorizations = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    // Nearly all others have another length, so they cost no copy in lower case.
    if (name.length === HOST.length && name.toLowerCase() === HOST) hosts++
    else if (name.length === AUTHORIZATION.length && name.toLowerCase() === AUTHORIZATION) authorizations++
  }
  if (hosts > 1) throw repeated('Host')
  if (authorizations > 1) throw repeated('Authorization')
  if (hosts === 0 && httpVersionMajor === 1 && httpVersionMinor > 0)
    throw new ServeError('INVALID_ARGUMENT', 'The header Host is required')
}

const HOST = 'host'
const AUTHORIZATION = 'authorization'

function repeated(name: string): ServeError {
  return new ServeError('INVALID_ARGUMENT', `The header ${name} must not be repeated`)
}

/** The media type without its parameters; undefined if the client sent none. */
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

/** Whether the body has a transfer coding beside `chunked`: Node would leave it as it is. */
export function hasUnknownCoding({ headers }: IncomingMessage): boolean {
  const coding = headers['transfer-encoding']
  return coding !== undefined && coding.trim().toLowerCase() !== 'chunked'
}

/** The body size that the client declares, in bytes; Infinity if it declares none. */
export function declaredLength(req: IncomingMessage): number {
  return Number(req.headers['content-length'] ?? Infinity)
}

/** Whether the client declares a body above the limit. */
export function declaresTooLarge(req: IncomingMessage, maxBytes: number): boolean {
  const length = declaredLength(req)
  return length !== Infinity && length > maxBytes
}
