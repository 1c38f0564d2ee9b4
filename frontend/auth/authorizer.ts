import type { PeerCertificate } from 'node:tls'
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
