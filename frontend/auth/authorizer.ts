/** What the listeners ask of the tokens. token-store.ts holds the keys. */
export type TokenKind = 'inference' | 'management'

/** Who sends a token; a socket is one. No address (a Unix socket): failures are not limited. */
export interface Client {
  readonly remoteAddress?: string | undefined
}

export interface Authorizer {
  /**
   * Checks an `Authorization` header value. Does nothing when token authorization is off, and does not read
   * the client's address then.
   * @param client after ten tokens from its address that are no key of this server, one per second is checked
   * and the others are refused unchecked; undefined: not limited
   * @throws ServeError UNAUTHORIZED with TorchServe's message
   */
  check(kind: TokenKind, authorization: string | undefined, client?: Client): void
  /**
   * The /token route: makes a new key of the given kind and rewrites key_file.json.
   * @param client as for `check`
   * @throws ServeError INVALID_API_KEY with TorchServe's message
   */
  rotate(kind: string | undefined, authorization: string | undefined, client?: Client): Promise<void>
}
