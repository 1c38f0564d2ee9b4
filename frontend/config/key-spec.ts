import type { ValueType } from './value-types.ts'

/** Declaration of one configuration key. */
export interface KeySpec<T> {
  /** Name in config.properties; of `environment` keys, the variable's name. */
  readonly name: string
  /** Environment variable that sets the key; undefined: none. */
  readonly env: string | undefined
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

/** Differences from the usual case: a key of TorchServe, in the file, with the variable TS_<KEY>. */
export type Details = Partial<Pick<KeySpec<unknown>, 'env' | 'from' | 'envAlways' | 'ours'>>

/** A key with a default. */
export function key<T>(
  name: string,
  type: ValueType<T>,
  fallback: string,
  doc: string,
  details: Details = {},
) {
  return spec<T>(name, type, fallback, doc, details)
}

/** A key whose setting is undefined unless set. */
export function optional<T>(name: string, type: ValueType<T>, doc: string, details: Details = {}) {
  return spec<T | undefined>(name, type, undefined, doc, details)
}

function spec<T>(
  name: string,
  type: ValueType<T>,
  fallback: string | undefined,
  doc: string,
  details: Details,
): KeySpec<T> {
  const plain = { env: `TS_${name.toUpperCase()}`, from: 'file', envAlways: false, ours: false } as const
  return { name, type, fallback, doc, ...plain, ...details }
}
