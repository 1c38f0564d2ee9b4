/** Whether a JSON value is an object; a list is none. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The value of a JSON text; undefined, which no JSON says: it is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

/** Fields, or undefined where there are none. */
export function unlessEmpty<T extends object>(fields: T): T | undefined {
  return Object.keys(fields).length === 0 ? undefined : fields
}
