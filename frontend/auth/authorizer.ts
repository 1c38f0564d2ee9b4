import type { PeerCertificate } from 'node:tls'
import { createHash } from 'node:crypto'
import type { Principal, Scope } from './principal.ts'

/** Who sends a token; a socket is one. No address (a Unix socket): failures are not limited. */
export interface Client {
  readonly remoteAddress?: string | undefined
  /** Over TLS: whether a configured CA has signed its certificate. */
  readonly authorized?: boolean | undefined
  /** Over TLS: its certificate; an empty object if there is none. */
  getPeerCertificate?(): PeerCertificate
}

export interface Authorizer {
  /**
   * Who sends this `Authorization` header value, if that caller has the scope (`any`: one of them). Anybody
   * has it when authorization is off; the client's address is not read then.
   * @param client after ten tokens from its address that are no key of this server, one per second is checked
   * and the others are refused unchecked; undefined: not limited
   * @throws ServeError UNAUTHORIZED with TorchServe's message
   */
  check(scope: Scope | 'any', authorization: string | undefined, client?: Client): Principal
  /**
   * Work that must be done before `check` can answer: the first time that a JWT is seen. Never rejects.
   * Undefined, as nearly always: `check` knows.
   */
  readonly prepare?:
    ((authorization: string | undefined, client?: Client) => Promise<void> | undefined) | undefined
  /**
   * The /token route: makes a new key of the given kind and rewrites key_file.json.
   * @param client as for `check`
   * @throws ServeError INVALID_API_KEY with TorchServe's message
   */
  rotate(kind: string | undefined, authorization: string | undefined, client?: Client): Promise<void>
}

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
