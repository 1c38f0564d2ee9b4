import type { ValueType } from './value-types.ts'

/** Everything there is to know about one key. */
export interface KeySpec<T> {
  /** Its name in config.properties; for `environment` keys the name of the variable. */
  readonly name: string
  /** The variable that sets it; undefined: not settable by the environment. */
  readonly env: string | undefined
  /** `environment`: not a key of the file; the variable always counts. */
  readonly from: 'file' | 'environment'
  /** Its variable counts without enable_envvars_config, and before file and flags. */
  readonly envAlways: boolean
  readonly type: ValueType<T>
  /** Text that stands for the key when nobody sets it; undefined: the setting is undefined then. */
  readonly fallback: string | undefined
  /** A key that TorchServe does not have. */
  readonly ours: boolean
  /** One line for the documentation. */
  readonly doc: string
}

/** Where a key differs from the plain case: in the file, TorchServe's own, variable TS_<KEY>. */
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

/** A key whose setting is undefined until somebody sets it. */
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
