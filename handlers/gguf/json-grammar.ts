import { ownValue } from '../../common/json.ts'
import {
  type Bounds,
  FORMATS,
  integers,
  JSON_RULES,
  list,
  literal,
  MAX_COUNT,
  numbers,
  otherString,
  times,
  union,
} from './gbnf.ts'
import {
  checked,
  isAnnotation,
  isOf,
  LIMITS,
  names,
  permitsNull,
  refuse,
  same,
  type Schema,
  SchemaDocument,
  schemas,
  section,
  typesOf,
} from './json-schema.ts'

const MAX_DEPTH = 64
/** Schemas, and repetitions in their rules: a reference with keywords beside it is a copy. */
const MAX_WORK = 100_000

/**
 * Makes GBNF of JSON schemas. Everything that a grammar permits is valid: it may permit less than the schema,
 * such as no properties beside the named ones if the schema does not mention them. `oneOf` counts as `anyOf`.
 */
export class JsonGrammar {
  readonly #rules: string[] = []
  readonly #references = new Map<string, string>()
  #document = new SchemaDocument({})
  #at = ''
  #work = 0

  /** The whole grammar, for a sequence of terminals and rules. */
  text(root: string): string {
    return `root ::= ${root}${JSON_RULES}${this.#rules.map((rule, i) => `r${i} ::= ${rule}\n`).join('')}`
  }

  /**
   * The sequence for a schema with its own definitions.
   * @param at the schema's place in the request
   * @throws OpenAIError 400 with the place of what is not supported
   */
  schema(root: unknown, at: string): string {
    this.#document = new SchemaDocument(root)
    this.#at = at
    this.#references.clear()
    return this.#value(root, at, 0)
  }

  #rule(body: string): string {
    this.#rules.push(body)
    return `r${this.#rules.length - 1}`
  }

  #spend(work: number, at: string): void {
    this.#work += work
    if (this.#work > MAX_WORK) refuse(at, 'the schema is too large')
  }

  #value(given: unknown, at: string, depth: number): string {
    if (depth > MAX_DEPTH) refuse(at, 'it is nested too deeply')
    this.#spend(1, at)
    const schema = checked(given, at)
    const { $ref, allOf, anyOf, oneOf, ...own } = schema
    const alone = Object.keys(schema).filter((key) => !isAnnotation(key)).length === 1
    if ($ref !== undefined && alone) return this.#reference($ref, `${at}.$ref`, depth)
    if ($ref !== undefined || allOf !== undefined) {
      const parts = [
        { ...own, ...(anyOf !== undefined && { anyOf }), ...(oneOf !== undefined && { oneOf }) },
        ...($ref === undefined ? [] : [this.#document.found($ref, `${at}.$ref`)]),
        ...(allOf === undefined ? [] : schemas(allOf, `${at}.allOf`)),
      ]
      return this.#value(
        parts.reduce((all, part) => this.#document.both(all, part, at)),
        at,
        depth + 1,
      )
    }
    for (const [name, alternatives] of Object.entries({ anyOf, oneOf })) {
      if (alternatives === undefined) continue
      const outer = { ...own, ...(name === 'anyOf' && oneOf !== undefined && { oneOf }) }
      const plain = Object.keys(outer).every(isAnnotation)
      return union(
        schemas(alternatives, `${at}.${name}`).map((each, i) => {
          const place = `${at}.${name}[${i}]`
          return this.#value(plain ? each : this.#document.both(outer, each, place), place, depth + 1)
        }),
      )
    }
    return this.#plain(own, at, depth)
  }

  /** A value of one of the schema's types. */
  #plain(schema: Schema, at: string, depth: number): string {
    const types = typesOf(schema, at)
    if (schema['const'] !== undefined || schema['enum'] !== undefined) return constants(schema, types, at)
    if (types === undefined) return 'value'
    return union(types.map((type) => this.#typed(type, schema, at, depth)))
  }

  #typed(type: string, schema: Schema, at: string, depth: number): string {
    if (type === 'object') return this.#object(schema, at, depth)
    if (type === 'array') return this.#array(schema, at, depth)
    if (type === 'boolean') return '("true" | "false")'
    if (type === 'null') return '"null"'
    return type === 'string' ? this.#string(schema, at) : number(type, schema, at)
  }

  #reference(ref: unknown, at: string, depth: number): string {
    const known = this.#references.get(String(ref))
    if (known !== undefined) return known
    const schema = this.#document.found(ref, at)
    const place = this.#rules.push('') - 1
    this.#references.set(String(ref), `r${place}`)
    this.#rules[place] = this.#value(schema, this.#at + String(ref).slice(1).replaceAll('/', '.'), depth + 1)
    return `r${place}`
  }

  #object(schema: Schema, at: string, depth: number): string {
    const properties = new Map(Object.entries(section(schema['properties'], `${at}.properties`)))
    const required = schema['required'] === undefined ? [] : names(schema['required'], `${at}.required`)
    const { additionalProperties: given, propertyNames: allowed } = schema
    if (allowed !== undefined && ![true, {}, { type: 'string' }].some((each) => same(allowed, each)))
      refuse(`${at}.propertyNames`, 'it is not supported')
    const more = given ?? schema['properties'] === undefined
    for (const name of required) {
      if (properties.has(name)) continue
      if (given === false) refuse(`${at}.required`, `${name} is not among the properties`)
      properties.set(name, given ?? true)
    }
    const [min, max] = this.#counts(schema, 'Properties', at)
    if (max < required.length) refuse(`${at}.maxProperties`, 'more properties are required')
    const optional = [...properties].filter(([name, each]) => !required.includes(name) && !permitsNull(each))
    const all = min > properties.size - optional.length
    const pairs = [...properties].map(([name, each]): [string, boolean] => [
      this.#rule(
        `${literal(JSON.stringify(name))} colon ${this.#value(each, `${at}.properties.${name}`, depth + 1)}`,
      ),
      all || required.includes(name) || permitsNull(each),
    ])
    if (max < pairs.length) refuse(`${at}.maxProperties`, 'there are more properties')
    const least = Math.max(0, min - pairs.length)
    if (more === false && least > 0) refuse(`${at}.minProperties`, 'there are fewer properties')
    if (more === false || max === pairs.length) return this.#braces(pairs, '', '')
    const key = otherString([...properties.keys()])
    const extra = this.#rule(`${key} colon ${this.#value(more, `${at}.additionalProperties`, depth + 1)}`)
    const most = max - pairs.length
    return this.#braces(pairs, list(extra, least, most), times(`sep ${extra}`, least, most))
  }

  /**
   * @param pairs names with values, in order, each with whether it must be there
   * @param first what may stand behind the pairs if none is there
   * @param rest the same if one is there
   */
  #braces(pairs: readonly [string, boolean][], first: string, rest: string): string {
    for (const [pair, required] of pairs.toReversed()) {
      const begun = this.#rule(`${pair} ${rest}`)
      first = required ? begun : first === '' ? `${begun}?` : this.#rule(`${begun} | ${first}`)
      rest = this.#rule(required ? `sep ${begun}` : `(sep ${pair})? ${rest}`)
    }
    return `"{" ${first} "}"`
  }

  #array(schema: Schema, at: string, depth: number): string {
    const { items, prefixItems, additionalItems, uniqueItems } = schema
    const isTuple = Array.isArray(items)
    const [min, max] = this.#counts(schema, 'Items', at)
    if (uniqueItems === true && max > 1) refuse(`${at}.uniqueItems`, 'it is not supported')
    const tuple = isTuple ? items : prefixItems === undefined ? [] : schemas(prefixItems, `${at}.prefixItems`)
    const more = isTuple ? additionalItems : items
    const place = `${at}.${isTuple ? 'items' : 'prefixItems'}`
    const first = tuple.slice(0, max).map((each, i) => this.#value(each, `${place}[${i}]`, depth + 1))
    const [least, most] = [Math.max(0, min - first.length), max - first.length]
    if (more === false && least > 0) refuse(`${at}.minItems`, 'there are fewer items')
    const isOpen = more !== false && (more !== undefined || tuple.length === 0 || least > 0)
    if (!isOpen || most === 0) return `"[" ${first.join(' sep ')} "]"`
    const item = this.#rule(this.#value(more ?? true, `${at}.items`, depth + 1))
    if (first.length === 0) return `"[" ${list(item, least, most)} "]"`
    return `"[" ${first.join(' sep ')} ${times(`sep ${item}`, least, most)} "]"`
  }

  #string(schema: Schema, at: string): string {
    const [min, max] = this.#counts(schema, 'Length', at)
    const { format } = schema
    if (format === undefined)
      return min === 0 && max === Infinity ? 'string' : String.raw`"\"" ${times('char', min, max)} "\""`
    const known = FORMATS.get(format)
    if (known === undefined) refuse(`${at}.format`, `it must be of ${[...FORMATS.keys()].join(', ')}`)
    if (min > 1 || max < 254)
      refuse(`${at}.${min > 1 ? 'minLength' : 'maxLength'}`, 'it is not supported beside format')
    return String.raw`"\"" ${known} "\""`
  }

  /** Limits of a count: `minItems` and `maxItems`, and so on. More than MAX_COUNT is never written. */
  #counts(schema: Schema, what: 'Items' | 'Properties' | 'Length', at: string): [min: number, max: number] {
    const [min = 0, max] = ['min', 'max'].map((end) => {
      const value = ownValue(schema, `${end}${what}`)
      if (value === undefined || (Number.isInteger(value) && (value as number) >= 0))
        return value as number | undefined
      return refuse(`${at}.${end}${what}`, 'it must be a whole number')
    })
    if (min > MAX_COUNT) refuse(`${at}.min${what}`, `it must be at most ${MAX_COUNT}`)
    if (max !== undefined && max < min) refuse(`${at}.max${what}`, `it must be at least ${min}`)
    if (max !== undefined) this.#spend(Math.min(max, MAX_COUNT), at)
    return [min, max === undefined ? Infinity : Math.min(max, MAX_COUNT)]
  }
}

function constants(schema: Schema, types: readonly string[] | undefined, at: string): string {
  const isConst = Object.hasOwn(schema, 'const')
  const place = `${at}.${isConst ? 'const' : 'enum'}`
  const other = Object.keys(schema).find(
    (key) => !['type', isConst ? 'const' : 'enum'].includes(key) && !isAnnotation(key),
  )
  if (other !== undefined) refuse(`${at}.${other}`, 'it is not supported beside enum and const')
  const given = isConst ? [schema['const']] : schema['enum']
  if (!Array.isArray(given)) refuse(place, 'it must be a list')
  const values = given.filter((value) => types === undefined || types.some((type) => isOf(value, type)))
  if (values.length === 0) refuse(place, 'it permits nothing')
  return union(values.map((value) => literal(JSON.stringify(value))))
}

function number(type: string, schema: Schema, at: string): string {
  const [minimum, maximum, above, below] = LIMITS.map((key) => {
    const limit = ownValue(schema, key)
    const fits = type === 'integer' ? Number.isFinite(limit) : Number.isInteger(limit)
    return limit === undefined || fits
      ? (limit as number)
      : refuse(`${at}.${key}`, 'it must be a whole number')
  })
  if (minimum === undefined && maximum === undefined && above === undefined && below === undefined)
    return type
  const [least, most] = [-Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]
  const bounds: Bounds = {
    min: Math.max(minimum ?? least, above ?? least, least),
    max: Math.min(maximum ?? most, below ?? most, most),
    openMin: above !== undefined && above >= (minimum ?? least),
    openMax: below !== undefined && below <= (maximum ?? most),
  }
  const found = bounds.min > bounds.max ? undefined : (type === 'integer' ? integers : numbers)(bounds)
  return found ?? refuse(at, 'no number is within its limits')
}
