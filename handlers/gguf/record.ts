export type Fields = Record<string, unknown>

/** A section of a configuration; empty if it is not a map. */
export function record(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {}
}
