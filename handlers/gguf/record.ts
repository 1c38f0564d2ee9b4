export type Fields = Record<string, unknown>

/** A section of a configuration; what is none has no keys. */
export function record(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {}
}
