/** A configuration key as operators see it, without secrets. */
export interface ShownSetting {
  readonly name: string
  /** One line; undefined: it has no value. */
  readonly value: string | undefined
  /** Where the value came from: `config.properties:3` with its path, a flag, a variable, or `default`. */
  readonly source: string
  /** Undefined: without a value from elsewhere it has none. */
  readonly fallback: string | undefined
  readonly meaning: string
}
