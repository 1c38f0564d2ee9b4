import type { OpenApi, Operation, Schema } from '../common/openapi.ts'

/** One operation of the API description. */
export interface ApiOperation {
  /** In upper case. */
  readonly method: string
  readonly path: string
  readonly operation: Operation
}

/** The operations of one tag. */
export interface ApiGroup {
  readonly name: string
  readonly operations: readonly ApiOperation[]
}

const NO_TAG = 'Other'

/** The operations of all documents by their tags, each operation once. */
export function apiGroups(documents: readonly OpenApi[]): ApiGroup[] {
  const known = new Set<string>()
  const groups = new Map<string, ApiOperation[]>()
  for (const each of documents.flatMap(operationsOf)) {
    const key = `${each.method} ${each.path}`
    if (known.has(key)) continue
    known.add(key)
    const name = each.operation.tags?.[0] ?? NO_TAG
    const group = groups.get(name)
    if (group === undefined) groups.set(name, [each])
    else group.push(each)
  }
  return [...groups]
    .map(([name, operations]) => ({ name, operations }))
    .sort((one, other) => one.name.localeCompare(other.name))
}

/** The groups without the operations that do not say every word of a text, and without empty ones. */
export function foundGroups(groups: readonly ApiGroup[], text: string): ApiGroup[] {
  const words = text.toLowerCase().split(/\s+/)
  return groups
    .map(({ name, operations }) => ({ name, operations: operations.filter((each) => says(each, words)) }))
    .filter(({ operations }) => operations.length > 0)
}

/** `string`, `array of integer`, `string (binary)`: what a value is. */
export function typeText({ type, items, format }: Schema): string {
  const text = items === undefined ? type : `${type} of ${typeText(items)}`
  return format === undefined ? text : `${text} (${format})`
}

/** The object whose fields say what a value is: itself, or each item of a list; undefined: neither is one. */
export function objectIn(schema: Schema): Schema | undefined {
  if (schema.properties !== undefined) return schema
  return schema.items && objectIn(schema.items)
}

function operationsOf({ paths }: OpenApi): ApiOperation[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  )
}

function says({ method, path, operation }: ApiOperation, words: readonly string[]): boolean {
  const { description, operationId, parameters } = operation
  const names = parameters.flatMap((each) => [each.name, each.description])
  const text = [method, path, operationId, description, ...names].join(' ').toLowerCase()
  return words.every((word) => text.includes(word))
}
