import { createHash } from 'node:crypto'
import type { Principal } from './principal.ts'

/** What a client sends after `Bearer`. */
export interface Credential {
  readonly token: string
  /** SHA-256 of the token in hex. Look-ups use it, so that their time tells nothing of a secret. */
  readonly digest: string
}

/** One kind of callers besides those with TorchServe's keys. */
export interface IdentitySource {
  /** Who shows this; NOBODY: somebody whose rights have ended; undefined: nobody that it knows. */
  find(credential: Credential): Principal | undefined
  /** Work that must be done before `find` can answer; undefined: none. Never rejects. */
  readonly prepare?: ((credential: Credential) => Promise<void> | undefined) | undefined
  close(): void
}

/** Longest token that is looked at. */
const MAX_TOKEN = 8_192
const BEARER = /^Bearer\s+(\S+)$/

/** The credential of an `Authorization` header value; undefined: it has another form. */
export function credentialOf(authorization: string): Credential | undefined {
  const token = BEARER.exec(authorization)?.[1]
  if (token === undefined || token.length > MAX_TOKEN) return undefined
  return { token, digest: digestOf(token) }
}

export function digestOf(token: string): string {
  return createHash('sha256').update(token).digest('hex')
}
