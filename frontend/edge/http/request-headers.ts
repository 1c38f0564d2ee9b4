import type { IncomingMessage } from 'node:http'
import { ServeError } from '../../../common/errors.ts'
import { isCredentialHeader } from '../../../common/headers.ts'

/** The headers of a request, in the format of common/header-lines.ts. */
export interface ClientHeaders {
  readonly headers: string
  /** Those with credentials; undefined: none. */
  readonly credentials: string | undefined
}

/**
 * The client's headers in the format of common/header-lines.ts, with names as the client wrote them.
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
