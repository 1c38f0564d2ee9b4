import { isObject, ownValue } from '../../common/json.ts'
import { closest } from '../../common/names.ts'

/** Keys that may be misspelt: an archive's file may have thousands, and comparing takes time. */
const MAX_LOOKED_AT = 200

/**
 * Reads single keys of a model-config.yaml. As in TorchServe (its Java class ModelConfig), a value of the
 * wrong type causes a warning and the default stays. Unknown keys belong to the handler.
 */
export class ConfigReader {
  readonly warnings: string[] = []
  readonly #config: Record<string, unknown>
  readonly #asked = new Set<string>()

  constructor(config: Record<string, unknown>) {
    this.#config = config
  }

  integer(key: string, min: number): number | undefined {
    return this.#read(
      key,
      `an integer of at least ${min}`,
      (value) => Number.isSafeInteger(value) && value >= min,
    )
  }

  /** Like {@link integer}, but raises smaller values to `min`, as TorchServe does. */
  raised(key: string, min: number): number | undefined {
    const value = this.#read(key, 'an integer', Number.isSafeInteger)
    return value === undefined ? undefined : Math.max(min, value)
  }

  integers(key: string): number[] | undefined {
    const value = this.#value(key)
    if (value === undefined || value === null) return undefined
    if (Array.isArray(value) && value.every(Number.isSafeInteger)) return value as number[]
    this.#warn(key, 'a list of integers')
    return undefined
  }

  /** Warns about a key of TorchServe that has no effect here. */
  inert(key: string, reason: string): void {
    const value = this.#value(key)
    if (value !== undefined && value !== null) this.warnings.push(`${key} has no effect here: ${reason}`)
  }

  /** A number greater than `above`, or at least `from`. */
  number(key: string, bound: { above: number } | { from: number }): number | undefined {
    const fits = 'above' in bound ? (v: number) => v > bound.above : (v: number) => v >= bound.from
    const words = 'above' in bound ? `a number above ${bound.above}` : `a number of at least ${bound.from}`
    return this.#read(key, words, (value) => Number.isFinite(value) && fits(value))
  }

  boolean(key: string): boolean | undefined {
    const value = this.#value(key)
    if (value === undefined || value === null || typeof value === 'boolean') return value ?? undefined
    this.#warn(key, 'true or false')
    return undefined
  }

  text(key: string): string | undefined {
    const value = this.#value(key)
    if (value === undefined || value === null || typeof value === 'string') return value ?? undefined
    this.#warn(key, 'a string')
    return undefined
  }

  /** Whether a key has a truth value, to choose between two forms. */
  isBoolean(key: string): boolean {
    return typeof this.#value(key) === 'boolean'
  }

  /** Whether a key has a text, to choose between two forms. */
  isText(key: string): boolean {
    return typeof this.#value(key) === 'string'
  }

  texts(key: string): string[] | undefined {
    const value = this.#value(key)
    if (value === undefined || value === null) return undefined
    if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value
    this.#warn(key, 'a list of strings')
    return undefined
  }

  word<W extends string>(key: string, words: readonly W[]): W | undefined {
    const value = this.#value(key)
    if (value === undefined || value === null) return undefined
    const word = words.find((candidate) => typeof value === 'string' && candidate === value.toLowerCase())
    if (word === undefined) this.#warn(key, `one of ${words.join(', ')}`)
    return word
  }

  section(key: string): ConfigReader | undefined {
    const value = this.#value(key)
    if (value === undefined || value === null) return undefined
    if (isObject(value)) return new ConfigReader(value)
    this.#warn(key, 'a map')
    return undefined
  }

  /** A value whose form is nobody's matter here. */
  any(key: string): unknown {
    return this.#value(key)
  }

  /** Warns about keys that nobody has asked for, and that look like one of the others. */
  misspelt(): void {
    for (const key of Object.keys(this.#config).slice(0, MAX_LOOKED_AT)) {
      const meant = this.#asked.has(key) ? undefined : closest(key, this.#asked)
      if (meant !== undefined)
        this.warnings.push(
          `${key} is not a key of the server, so only the handler sees it: did you mean ${meant}?`,
        )
    }
  }

  #value(key: string): unknown {
    this.#asked.add(key)
    return ownValue(this.#config, key)
  }

  #read(key: string, words: string, fits: (value: number) => boolean): number | undefined {
    const value = this.#value(key)
    if (value === undefined || value === null) return undefined
    if (typeof value === 'number' && fits(value)) return value
    this.#warn(key, words)
    return undefined
  }

  #warn(key: string, expected: string): void {
    this.warnings.push(
      `${key} must be ${expected}, found ${JSON.stringify(this.#value(key))}; the default is used`,
    )
  }
}
