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
