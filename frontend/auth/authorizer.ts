/** What the listeners ask of the tokens; the keys themselves live in token-store.ts. */
export type TokenKind = 'inference' | 'management'

export interface Authorizer {
  /**
   * Checks an `Authorization` header value. Does nothing when token authorization is off.
   * @param address of the client: after ten wrong tokens from there one in a second is looked at, the others are refused unseen. Undefined (a Unix socket, a second
   * check of one call): not limited
   * @throws ServeError UNAUTHORIZED with TorchServe's message
   */
  check(kind: TokenKind, authorization: string | undefined, address?: string): void
  /**
   * The /token route: makes a new key of the given kind and rewrites key_file.json.
   * @throws ServeError INVALID_API_KEY with TorchServe's message
   */
  rotate(kind: string | undefined, authorization: string | undefined, address?: string): Promise<void>
}
