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
      (value): value is number => isInteger(value) && value >= min,
    )
  }

  /** Like {@link integer}, but raises smaller values to `min`, as TorchServe does. */
  raised(key: string, min: number): number | undefined {
    const value = this.#read(key, 'an integer', isInteger)
    return value === undefined ? undefined : Math.max(min, value)
  }

  integers(key: string): number[] | undefined {
    return this.#read(
      key,
      'a list of integers',
      (value): value is number[] => Array.isArray(value) && value.every(isInteger),
    )
  }

  /** A number greater than `above`, or at least `from`. */
  number(key: string, bound: { above: number } | { from: number }): number | undefined {
    const fits = 'above' in bound ? (v: number) => v > bound.above : (v: number) => v >= bound.from
    const words = 'above' in bound ? `a number above ${bound.above}` : `a number of at least ${bound.from}`
    return this.#read(
      key,
      words,
      (value): value is number => typeof value === 'number' && Number.isFinite(value) && fits(value),
    )
  }

  boolean(key: string): boolean | undefined {
    return this.#read(key, 'true or false', (value) => typeof value === 'boolean')
  }

  text(key: string): string | undefined {
    return this.#read(key, 'a string', (value) => typeof value === 'string')
  }

  /** One of the words, in any letter case. */
  word<W extends string>(key: string, words: readonly W[]): W | undefined {
    const wordOf = (value: unknown): W | undefined =>
      words.find((word) => typeof value === 'string' && word === value.toLowerCase())
    return wordOf(
      this.#read(key, `one of ${words.join(', ')}`, (value): value is string => wordOf(value) !== undefined),
    )
  }

  section(key: string): ConfigReader | undefined {
    const value = this.#read(key, 'a map', isObject)
    return value && new ConfigReader(value)
  }

  /** Warns about a key of TorchServe that has no effect here. */
  inert(key: string, reason: string): void {
    if ((this.any(key) ?? null) !== null) this.warnings.push(`${key} has no effect here: ${reason}`)
  }

  /** Whether a key has a truth value, to choose between two forms. */
  isBoolean(key: string): boolean {
    return typeof this.any(key) === 'boolean'
  }

  /** The value, whatever its form. */
  any(key: string): unknown {
    this.#asked.add(key)
    return ownValue(this.#config, key)
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

  /** Null counts as absent. */
  #read<T>(key: string, expected: string, fits: (value: unknown) => value is T): T | undefined
  #read(key: string, expected: string, fits: (value: unknown) => boolean): unknown {
    const value = this.any(key)
    if (value === undefined || value === null || fits(value)) return value ?? undefined
    this.warnings.push(`${key} must be ${expected}, found ${JSON.stringify(value)}; the default is used`)
    return undefined
  }
}

function isInteger(value: unknown): value is number {
  return Number.isSafeInteger(value)
}
