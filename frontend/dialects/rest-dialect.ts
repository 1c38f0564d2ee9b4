import type { ServeError } from '../../common/errors.ts'
import type { TokenKind } from '../auth/authorizer.ts'
import type { ExchangeHandler } from '../edge/http/app.ts'
import type { Exchange } from '../edge/http/exchange.ts'
import type { Operation, PathItem } from './openapi.ts'

/** One way to speak with models over REST. It is registered by its line in dialects/index.ts. */
export interface RestDialect extends ExchangeHandler {
  /**
   * Answers the exchange, now or later. False: the path is none of this dialect's, nothing was done, and the
   * next dialect is asked. Errors that it does not answer in its own way may be thrown: the client gets
   * TorchServe's answer.
   */
  handle(exchange: Exchange): boolean
  /** What it answers, for the API description and for tests that walk every path. */
  paths(): readonly RestPath[]
  /**
   * The JSON of the 404 for a path that nobody answers but that clients of this dialect may ask for.
   * Undefined, or absent: the path is not in its area.
   */
  notFound?(exchange: Exchange, error: ServeError): string | undefined
}

/** One path of a dialect, or one of TorchServe's. */
export interface RestPath {
  /** In upper case; `*`: any. */
  readonly method: string
  /** With the names of OpenAPI: `/v1/models/{model_name}`. */
  readonly path: string
  /** The token that it asks for; undefined: none. */
  readonly token: TokenKind | undefined
  /** Its entry in the API description; absent: it has none. */
  readonly operation?: Operation
}

/** Paths that the API description has, as a list. */
export function describedPaths(
  items: Readonly<Record<string, PathItem>>,
  token: TokenKind | undefined,
): RestPath[] {
  return Object.entries(items).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      token,
      operation,
    })),
  )
}

/** Paths that the API description does not have. */
export function undescribedPaths(token: TokenKind, method: string, paths: readonly string[]): RestPath[] {
  return paths.map((path) => ({ method, path, token }))
}
