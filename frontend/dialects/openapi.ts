import type { Operation, Parameter, PathItem, Response, Schema } from '../../common/openapi.ts'

/** Short constructors for the parts of OpenAPI 3.0.1 that the API description uses. */

/** Properties by name: `[type, description]`, or a schema. */
type Fields = Record<string, readonly [type: string, description: string] | Schema>

/** An object schema; every field is required unless `optional` names it. */
export function object(fields: Fields, optional: readonly string[] = []): Schema {
  const properties = Object.fromEntries(
    Object.entries(fields).map(([name, field]): [string, Schema] => [
      name,
      'type' in field ? field : { type: field[0], description: field[1] },
    ]),
  )
  const required = Object.keys(fields).filter((name) => !optional.includes(name))
  return { type: 'object', required, properties }
}

export function pathParameter(name: string, description: string): Parameter {
  return { in: 'path', name, description, required: true, schema: { type: 'string' } }
}

/** An optional query parameter. Defaults are strings, as in TorchServe's description. */
export function query(name: string, description: string, type = 'string', fallback?: string): Parameter {
  const schema = fallback === undefined ? { type } : { type, default: fallback }
  return { in: 'query', name, description, required: false, schema }
}

export function json(description: string, schema: Schema): Response {
  return { description, content: { 'application/json': { schema } } }
}

const ERROR = object({
  code: ['integer', 'The HTTP status.'],
  type: ['string', 'The kind of error.'],
  message: ['string', 'The error message.'],
})
const STATUS = object({ status: ['string', 'The result.'] })

/** An error response with TorchServe's error object. */
export function error(description: string): Response {
  return json(description, ERROR)
}

/** A response with TorchServe's status object. */
export function status(description: string): Response {
  return json(description, STATUS)
}

export const SERVER_ERROR = { '500': error('The server or the handler failed.') }

/** The operations of paths in a group of the description; those that are in one stay there. */
export function tagged(items: Readonly<Record<string, PathItem>>, tag: string): Record<string, PathItem> {
  const ofItem = (item: PathItem): PathItem =>
    Object.fromEntries(
      Object.entries(item).map(([method, operation]): [string, Operation] => [
        method,
        { tags: [tag], ...operation },
      ]),
    )
  return Object.fromEntries(Object.entries(items).map(([path, item]) => [path, ofItem(item)]))
}
