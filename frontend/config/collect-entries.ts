import { ServeError } from '../../common/errors.ts'
import { ownValue } from '../../common/json.ts'
import { closest } from '../../common/names.ts'
import { INERT_KEYS, inertEnvName, REMOVED_KEYS, removedKey } from './removed-keys.ts'
import { envNameOf, type KeySpec } from './key-spec.ts'
import { KEYS } from './keys.ts'
import { oneLine, type Entry, type Environment } from './properties.ts'

/** Sources of keys, besides the defaults. */
export interface Sources {
  /** The last snapshot's settings; every other source overrides them. Default: none. */
  readonly base?: readonly Entry[]
  /** MLServer's settings as keys of this server, below file, flags and env. Default: none. */
  readonly mlserver?: readonly Entry[]
  readonly file: readonly Entry[]
  readonly flags: readonly Entry[]
  readonly env: Environment
  /** The `model_snapshot` to restore, whatever the file says; `undefined` given: none. Absent: the file's. */
  readonly models?: Entry | undefined
}

const SPECS: readonly KeySpec<unknown>[] = Object.values(KEYS)
const FILE_KEYS = new Map(SPECS.filter((spec) => spec.from === 'file').map((spec) => [spec.name, spec]))
const INERT = new Map(INERT_KEYS.map((key) => [key.name, key]))

/**
 * The winning entry of each key. From lowest to highest precedence: LOG_LOCATION, METRICS_LOCATION and TEMP;
 * the last snapshot's settings; MLServer's settings; the file; the flags; TS_<KEY> variables (only with
 * `enable_envvars_config=true`, which MLServer's settings contain). Empty text counts as unset. Keys without
 * effect are reported as warnings.
 * @throws ServeError CONFIG for a key that looks like a misspelling of a known one, or a removed one that
 *   tightened
 */
export function collectEntries(sources: Sources, warnings: string[]): Map<string, Entry> {
  const entries = new Map<string, Entry>()
  const add = (entry: Entry): void => {
    if (entry.text !== '') entries.set(entry.name, entry)
    else entries.delete(entry.name)
  }
  for (const spec of SPECS) if (spec.from === 'environment') fromEnv(sources.env, spec.env, spec.name, add)
  for (const entry of sources.base ?? []) if (isKnown(entry, warnings)) add(entry)
  sources.mlserver?.forEach(add)
  for (const entry of sources.file) if (isKnown(entry, warnings)) add(entry)
  sources.flags.forEach(add)
  for (const spec of SPECS) if (spec.envAlways) fromEnv(sources.env, spec.env, spec.name, add)
  addOverrides(sources.env, entries, add)
  if ('models' in sources) {
    entries.delete(KEYS.modelSnapshot.name)
    if (sources.models !== undefined) add(sources.models)
  }
  for (const key of INERT_KEYS) {
    const entry = entries.get(key.name)
    if (entry !== undefined) warnings.push(`${entry.origin}: ${key.name} has no effect here: ${key.reason}`)
  }
  for (const { name, text, origin } of entries.values())
    if (REMOVED_KEYS.has(name)) warnings.push(removedKey(name, text, origin))
  return entries
}

function addOverrides(
  env: Environment,
  entries: ReadonlyMap<string, Entry>,
  add: (entry: Entry) => void,
): void {
  if (!isTrue(entries, KEYS.enableEnvvarsConfig.name)) return
  for (const spec of FILE_KEYS.values()) {
    if (spec.name === KEYS.allowedUrls.name && !isTrue(entries, KEYS.useEnvAllowedUrls.name)) continue
    fromEnv(env, spec.env, spec.name, add)
  }
  for (const key of INERT_KEYS) fromEnv(env, inertEnvName(key.name), key.name, add)
  for (const name of REMOVED_KEYS.keys()) fromEnv(env, envNameOf(name), name, add)
}

function fromEnv(
  env: Environment,
  variable: string | undefined,
  name: string,
  add: (entry: Entry) => void,
): void {
  const text = variable === undefined ? '' : (ownValue(env, variable) ?? '').trim()
  if (text !== '') add({ name, text, origin: `environment variable ${variable}` })
}

function isTrue(entries: ReadonlyMap<string, Entry>, name: string): boolean {
  return entries.get(name)?.text.toLowerCase() === 'true'
}

/** Whether a configuration file may have the key. */
export function isKey(name: string): boolean {
  return FILE_KEYS.has(name) || INERT.has(name) || REMOVED_KEYS.has(name)
}

function isKnown({ name, origin }: Entry, warnings: string[]): boolean {
  if (isKey(name)) return true
  const meant = closest(name, [...FILE_KEYS.keys(), ...INERT.keys()])
  if (meant !== undefined) {
    throw new ServeError('CONFIG', `${origin}: unknown key ${oneLine(name)}: did you mean ${meant}?`)
  }
  warnings.push(`${origin}: unknown key ${oneLine(name)} is ignored`)
  return false
}
