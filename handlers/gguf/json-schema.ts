import { OpenAIError } from 'torchserve-ts'
import { ownValue, setOwn } from '../../common/json.ts'
import { record } from './settings.ts'

export type Schema = Readonly<Record<string, unknown>>

/** Keywords that permit and forbid nothing. Names that begin with `x-` are such, too. */
const ANNOTATIONS = new Set([
  ...['title', 'description', 'default', 'example', 'examples', 'deprecated', 'readOnly', 'writeOnly'],
  ...['$schema', '$id', 'id', '$comment', '$defs', 'definitions', 'discriminator'],
  ...['contentEncoding', 'contentMediaType', 'contentSchema'],
])
export const LIMITS = ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum']
/** Keywords of each type. They do not concern values of other types. */
const KEYWORDS: ReadonlyMap<string, readonly string[]> = new Map([
  ['string', ['minLength', 'maxLength', 'format']],
  ['number', LIMITS],
  [
    'object',
    ['properties', 'required', 'additionalProperties', 'propertyNames', 'minProperties', 'maxProperties'],
  ],
  ['array', ['items', 'prefixItems', 'additionalItems', 'minItems', 'maxItems', 'uniqueItems']],
])
const KNOWN = new Set([
  ...[...KEYWORDS.values()].flat(),
  ...['type', 'enum', 'const', '$ref', 'anyOf', 'oneOf', 'allOf'],
])
const TYPES = ['string', 'number', 'integer', 'boolean', 'null', 'object', 'array']
/** References with keywords beside them that one document may have. */
const MAX_MERGES = 64

/** A schema with its definitions. Everything that is not supported is an OpenAIError 400 with its place. */
export class SchemaDocument {
  readonly #root: unknown
  #merges = 0

  constructor(root: unknown) {
    this.#root = root
  }

  /** The schema that a reference means. */
  found(ref: unknown, at: string): Schema {
    if (typeof ref !== 'string' || !/^#(\/|$)/.test(ref)) refuse(at, 'it must begin with #/')
    let found = this.#root
    for (const part of ref.split('/').slice(1)) {
      const key = part.replaceAll('~1', '/').replaceAll('~0', '~')
      found = typeof found === 'object' && found !== null ? ownValue(found as Schema, key) : undefined
    }
    return found === undefined ? refuse(at, `there is nothing at ${ref}`) : checked(found, at)
  }

  /** A schema that permits what both permit. */
  both(one: Schema, given: Schema, at: string): Schema {
    let other = given
    if (other['$ref'] !== undefined && one['$ref'] === undefined) {
      // A reference may lead to itself.
      if (++this.#merges > MAX_MERGES) refuse(at, 'it has too many references')
      const { $ref, ...rest } = other
      other = this.both(rest, this.found($ref, `${at}.$ref`), at)
    }
    for (const [open, closed] of [
      [one, other],
      [other, one],
    ] as const) {
      const allowed = closed['additionalProperties'] ?? true
      const own = record(closed['properties'])
      if (
        allowed !== true &&
        !Object.keys(record(open['properties'])).every((name) => Object.hasOwn(own, name))
      )
        refuse(`${at}.additionalProperties`, 'the schema beside it has other properties')
    }
    const all: Record<string, unknown> = { ...one }
    for (const [key, value] of Object.entries(other)) {
      const before = ownValue(all, key)
      if (before === undefined || isAnnotation(key) || same(before, value)) setOwn(all, key, value)
      else if (key === 'required') all['required'] = [...names(before, at), ...names(value, at)]
      else if (key === 'properties') all['properties'] = joined(record(before), record(value), at)
      else refuse(`${at}.${key}`, 'the schema beside it has another one')
    }
    return all
  }
}

/** An object schema without keywords that are unknown. */
export function checked(schema: unknown, at: string): Schema {
  if (schema === true) return {}
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema))
    refuse(at, 'it must be a schema')
  const unknown = Object.keys(schema).find((key) => !KNOWN.has(key) && !isAnnotation(key))
  if (unknown !== undefined) refuse(`${at}.${unknown}`, 'it is not supported')
  return schema as Schema
}

export function isAnnotation(key: string): boolean {
  return ANNOTATIONS.has(key) || key.startsWith('x-')
}

/** Without `type`, the types whose keywords the schema has. Undefined: any. */
export function typesOf(schema: Schema, at: string): readonly string[] | undefined {
  const { type } = schema
  if (type !== undefined) {
    const types: unknown[] = Array.isArray(type) ? type : [type]
    if (types.length === 0 || !types.every((each) => TYPES.includes(each as string)))
      refuse(`${at}.type`, `it must be of ${TYPES.join(', ')}`)
    return types as string[]
  }
  const types = [...KEYWORDS].filter(([, keys]) => keys.some((key) => Object.hasOwn(schema, key)))
  return types.length === 0 ? undefined : types.map(([each]) => each)
}

export function isOf(value: unknown, type: string): boolean {
  if (type === 'integer') return Number.isInteger(value)
  if (type === 'array') return Array.isArray(value)
  if (type === 'null') return value === null
  return typeof value === type && value !== null && !Array.isArray(value)
}

export function permitsNull(schema: unknown): boolean {
  const { type, anyOf, oneOf, enum: values, const: value } = record(schema)
  if (value === null || [type].flat().includes('null')) return true
  return [values].flat().includes(null) || [anyOf ?? [], oneOf ?? []].flat().some(permitsNull)
}

export function schemas(value: unknown, at: string): Schema[] {
  if (!Array.isArray(value) || value.length === 0) refuse(at, 'it must be a non-empty list of schemas')
  return value.map((each, i) => checked(each, `${at}[${i}]`))
}

export function names(value: unknown, at: string): string[] {
  if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return [...new Set(value)]
  return refuse(at, 'it must be a list of names')
}

export function section(value: unknown, at: string): Schema {
  return value === undefined || Object.keys(record(value)).length > 0 || same(value, {})
    ? record(value)
    : refuse(at, 'it must be an object')
}

function joined(one: Schema, other: Schema, at: string): Schema {
  const twice = Object.keys(one).find(
    (name) => Object.hasOwn(other, name) && !same(ownValue(one, name), ownValue(other, name)),
  )
  if (twice !== undefined) refuse(`${at}.properties.${twice}`, 'the schema beside it has another one')
  return { ...one, ...other }
}

export function same(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

export function refuse(param: string, why: string): never {
  throw new OpenAIError(`This JSON schema is not supported: ${param}: ${why}`, 400, { param })
}
