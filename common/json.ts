/** Whether a JSON value is an object and not an array. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Parses JSON. Returns undefined, which is no JSON value, if the text is not valid JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

/** Returns the fields, or undefined if there are none. */
export function unlessEmpty<T extends object>(fields: T): T | undefined {
  return Object.keys(fields).length === 0 ? undefined : fields
}

/** Maximum depth of objects and arrays in a client's JSON, where no other limit applies. */
export const MAX_NESTING = 100

/**
 * Whether a JSON value exceeds the depth. JSON.parse accepts any depth, but JSON.stringify would overflow the
 * stack.
 */
export function isNestedTooDeep(value: unknown, levels = MAX_NESTING): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (levels === 0) return true
  // Without a function call or a copy for each of a million numbers.
  for (const child of Array.isArray(value) ? (value as unknown[]) : Object.values(value)) {
    if (typeof child === 'object' && child !== null && isNestedTooDeep(child, levels - 1)) return true
  }
  return false
}

/** The part of a zod issue that its text needs. */
interface Issue {
  readonly path: readonly PropertyKey[]
  readonly message: string
  readonly code?: string
  readonly keys?: readonly string[]
}

/**
 * One sentence on the first of zod's issues: `ts_metrics.gauge[0].name must be a string`, or
 * `colour is not supported` for an unknown key.
 * @param issues those of a failed parse; their messages begin with a verb
 * @param root name of the value itself
 */
export function issueText([issue]: readonly Issue[], root: string): string {
  const { path, message, code, keys } = issue!
  if (code === 'unrecognized_keys') return `${placeOf([...path, ...keys!.slice(0, 1)])} is not supported`
  return `${placeOf(path) || root} ${message}`
}

function placeOf(path: readonly PropertyKey[]): string {
  const steps = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`))
  return steps.join('').replace(/^\./, '')
}

/**
 * The only access to an object whose keys come from outside. `record[key]` would find `constructor` and
 * `toString` in every object, and an assignment to `__proto__` changes the prototype. The lint rule
 * house/no-text-keys forbids both. Tables of the product are Maps.
 */

/** The own value of the object under the key; undefined if there is none. */
export function ownValue<V>(record: Readonly<Record<string, V>>, key: string): V | undefined {
  // eslint-disable-next-line house/no-text-keys -- the object has the key itself
  return Object.hasOwn(record, key) ? record[key] : undefined
}

/** Sets an own value of the object, whatever the key. */
export function setOwn<V>(record: Record<string, V>, key: string, value: V): void {
  if (key === '__proto__') {
    Object.defineProperty(record, key, { value, enumerable: true, writable: true, configurable: true })
  } else {
    // eslint-disable-next-line house/no-text-keys -- every key but __proto__ becomes the object's own
    record[key] = value
  }
}
