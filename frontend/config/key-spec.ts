import type { ValueType } from './value-types.ts'

/** Declaration of one configuration key. */
export interface KeySpec<T> {
  /** Name in config.properties; of `environment` keys, the variable's name. */
  readonly name: string
  /** Environment variable that sets the key. */
  readonly env: string
  /** `environment`: the key is not allowed in the file, and its variable always counts. */
  readonly from: 'file' | 'environment'
  /** The variable counts without enable_envvars_config, and overrides file and flags. */
  readonly envAlways: boolean
  readonly type: ValueType<T>
  /** Default, as text; undefined: the setting is undefined unless set. */
  readonly fallback: string | undefined
  /** Whether the key is this server's own, not TorchServe's. */
  readonly ours: boolean
  /** One line for docs/configuration.md. */
  readonly doc: string
}

/**
 * Differences from the usual case: a key in the file, with the setting's name in snake case, and with the
 * variable TS_<KEY>.
 */
type Details = Partial<Pick<KeySpec<unknown>, 'name' | 'env' | 'from' | 'envAlways'>>

/** An entry of the table. `named` completes it. */
interface Draft<T> extends Details, Pick<KeySpec<T>, 'type' | 'fallback' | 'ours' | 'doc'> {}

/** A key of TorchServe with a default. */
export function key<T>(type: ValueType<T>, fallback: string, doc: string, details: Details = {}): Draft<T> {
  return { type, fallback, doc, ours: false, ...details }
}

/** A key of TorchServe whose setting is undefined unless set. */
export function optional<T>(type: ValueType<T>, doc: string, details: Details = {}): Draft<T | undefined> {
  return { type, fallback: undefined, doc, ours: false, ...details }
}

/** A key of this server's own with a default. */
export function ours<T>(type: ValueType<T>, fallback: string, doc: string, details: Details = {}): Draft<T> {
  return { type, fallback, doc, ours: true, ...details }
}

/** A key of this server's own whose setting is undefined unless set. */
export function oursOptional<T>(
  type: ValueType<T>,
  doc: string,
  details: Details = {},
): Draft<T | undefined> {
  return { type, fallback: undefined, doc, ours: true, ...details }
}

/** The table with the name and the variable of each key. */
export function named<T extends Readonly<Record<string, Draft<unknown>>>>(
  drafts: T,
): { readonly [K in keyof T]: KeySpec<T[K] extends Draft<infer V> ? V : never> } {
  const specs = Object.entries(drafts).map(([setting, draft]): [string, KeySpec<unknown>] => {
    const { name = snakeCase(setting), from = 'file', envAlways = false } = draft
    const env = draft.env ?? (from === 'environment' ? name : envNameOf(name))
    return [setting, { ...draft, name, env, from, envAlways }]
  })
  return Object.fromEntries(specs) as ReturnType<typeof named<T>>
}

/** The variable that sets a key: the key in capitals, prefixed with `TS_` unless it has that prefix. */
export function envNameOf(key: string): string {
  return key.startsWith('ts_') ? key.toUpperCase() : `TS_${key.toUpperCase()}`
}

function snakeCase(setting: string): string {
  return setting.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
