/** As much of a CustomResourceDefinition's openAPIV3Schema as these resources use. */
export interface Schema {
  type?: string
  properties?: Record<string, Schema>
  additionalProperties?: Schema | boolean
  items?: Schema
  required?: string[]
  enum?: unknown[]
  pattern?: string
  anyOf?: Schema[]
  'x-kubernetes-int-or-string'?: boolean
  'x-kubernetes-preserve-unknown-fields'?: boolean
}

/** The problems of a value. An unknown field is a problem, because a cluster would drop it silently. */
export function problems(value: unknown, schema: Schema, path = ''): string[] {
  const at = path === '' ? 'the resource' : path
  if (schema.enum !== undefined && !schema.enum.includes(value))
    return [`${at} is none of ${schema.enum.join(', ')}`]
  if (schema['x-kubernetes-int-or-string'] === true) {
    return typeof value === 'string' || Number.isInteger(value) ? [] : [`${at} is no whole number or text`]
  }
  if (schema.pattern !== undefined && !new RegExp(schema.pattern).test(String(value)))
    return [`${at} does not match ${schema.pattern}`]
  switch (schema.type) {
    case 'object':
      return ofObject(value, schema, path, at)
    case 'array':
      if (!Array.isArray(value)) return [`${at} is no list`]
      return value.flatMap((each, index) => problems(each, schema.items ?? {}, `${path}[${index}]`))
    case 'integer':
      return Number.isInteger(value) ? [] : [`${at} is no whole number`]
    case 'string':
    case 'boolean':
    case 'number':
      return typeof value === schema.type ? [] : [`${at} is no ${schema.type}`]
    default:
      return []
  }
}

function ofObject(value: unknown, schema: Schema, path: string, at: string): string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [`${at} is no object`]
  const { properties = {}, additionalProperties, required = [] } = schema
  const open =
    schema['x-kubernetes-preserve-unknown-fields'] === true ||
    (schema.properties === undefined && additionalProperties === undefined)
  const missing = required.filter((name) => !(name in value)).map((name) => `${at} has no ${name}`)
  const found = Object.entries(value).flatMap(([name, inner]) => {
    const inside = path === '' ? name : `${path}.${name}`
    const known = Object.hasOwn(properties, name) ? properties[name] : additionalProperties
    if (typeof known === 'object') return problems(inner, known, inside)
    return known === true || open ? [] : [`${inside} is not in the schema`]
  })
  return [...missing, ...found]
}
