import type { ServeError } from '../../common/errors.ts'
import type { Operation, PathItem } from '../../common/openapi.ts'
import type { Scope } from '../auth/principal.ts'
import type { HttpApi } from '../edge/http/app.ts'
import type { HttpCall } from '../edge/http/http-call.ts'
import { tagged } from './openapi.ts'

/** What the paths of a dialect may ask of their callers; /metrics belongs to none. */
export type DialectScope = Exclude<Scope, 'metrics'>

/** One API that REST clients can use. Register it with one line in dialects/index.ts. */
export interface RestDialect<Route = unknown> extends HttpApi<Route> {
  /** The paths it serves, for the API description and for tests of every path. */
  paths(): readonly RestPath[]
  /**
   * The JSON of the 404 for an unknown path in this dialect's area. Undefined, or absent: the path is not in
   * its area.
   */
  notFound?(call: HttpCall, error: ServeError): string | undefined
}

/** One path of a dialect or of TorchServe. */
export interface RestPath {
  /** In upper case; `*`: any. */
  readonly method: string
  /** In OpenAPI notation: `/v1/models/{model_name}`. */
  readonly path: string
  /** The kind of token it requires; undefined: none. */
  readonly token: DialectScope | undefined
  /** Its entry in the API description; absent: it has none. */
  readonly operation?: Operation
}

/** Converts the paths of the API description to a list. @param tag the group of those that have none */
export function describedPaths(
  items: Readonly<Record<string, PathItem>>,
  token: DialectScope | undefined,
  tag: string,
): RestPath[] {
  return Object.entries(tagged(items, tag)).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      token,
      operation,
    })),
  )
}

/** Paths that the API description does not contain. */
export function undescribedPaths(token: DialectScope, method: string, paths: readonly string[]): RestPath[] {
  return paths.map((path) => ({ method, path, token }))
}
