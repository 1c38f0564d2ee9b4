/** What the listeners ask of the tokens. token-store.ts holds the keys. */
export type TokenKind = 'inference' | 'management'

export interface Authorizer {
  /**
   * Checks an `Authorization` header value. Does nothing when token authorization is off.
   * @throws ServeError UNAUTHORIZED with TorchServe's message
   */
  check(kind: TokenKind, authorization: string | undefined): void
  /**
   * The /token route: makes a new key of the given kind and rewrites key_file.json.
   * @throws ServeError INVALID_API_KEY with TorchServe's message
   */
  rotate(kind: string | undefined, authorization: string | undefined): Promise<void>
}
