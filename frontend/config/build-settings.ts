import { ServeError } from '../../common/errors.ts'
import { setOwn } from '../../common/json.ts'
import { redactSecrets } from '../../common/texts.ts'
import { collectEntries, type Sources } from './collect-entries.ts'
import type { KeySpec } from './key-spec.ts'
import { KEYS } from './keys.ts'
import { oneLine, type Entry, shownValue } from './properties.ts'
import type { Settings } from './settings.ts'
import type { ListenAddress } from './listen-address.ts'
import type { ShownSetting } from '../../common/server-events.ts'

export interface LoadedSettings {
  /** Validated and deeply frozen. */
  readonly settings: Settings
  /** Accepted input that may not do what the user expects; one line each. */
  readonly warnings: readonly string[]
  /** Source of each setting: `path:line`, a flag, a variable, or `default`. */
  readonly origins: Readonly<Record<keyof Settings, string>>
  /** What the user set, by key. Includes keys without effect; excludes defaults. */
  readonly entries: ReadonlyMap<string, Entry>
}

/** @throws ServeError CONFIG: the place, the key, the value and what it must be, of each that is wrong */
export function buildSettings(sources: Sources): LoadedSettings {
  const warnings: string[] = []
  const entries = collectEntries(sources, warnings)
  const values: Record<string, unknown> = {}
  const origins: Record<string, string> = {}
  const problems: Problem[] = []
  for (const [setting, spec] of Object.entries(KEYS)) {
    const entry = entries.get(spec.name)
    setOwn(values, setting, valueOf(spec, entry, problems, warnings))
    setOwn(origins, setting, entry?.origin ?? 'default')
  }
  if (problems.length > 0) throw new ServeError('CONFIG', inOrder(problems, entries).join('; '))
  if (values['debug'] === true) values['logLevel'] = 'debug'
  values['allowPrivateUrls'] ??= entries.has(KEYS.allowedUrls.name)
  // KEYS has one spec for each setting, of that setting's type.
  const settings = values as unknown as Settings
  const loaded: LoadedSettings = {
    settings,
    warnings,
    origins: origins as LoadedSettings['origins'],
    entries,
  }
  checkListeners(loaded)
  return deepFreeze(loaded)
}

/** A value that cannot be used. */
interface Problem {
  readonly key: string
  readonly message: string
}

/** The messages, in the order in which the user said what they are about. */
function inOrder(problems: readonly Problem[], entries: ReadonlyMap<string, Entry>): string[] {
  const said = [...entries.keys()]
  return [...problems].sort((a, b) => said.indexOf(a.key) - said.indexOf(b.key)).map(({ message }) => message)
}

function valueOf(
  spec: KeySpec<unknown>,
  entry: Entry | undefined,
  problems: Problem[],
  warnings: string[],
): unknown {
  const origin = entry?.origin ?? 'default'
  const text = entry?.text ?? spec.fallback
  if (text === undefined) return undefined
  let why = ''
  const explain = (reason: string): void => {
    why = ` (${oneLine(redactSecrets(reason))})`
  }
  const value = spec.type.parse(text, explain, (what) => warnings.push(`${origin}: ${spec.name}: ${what}`))
  if (value !== undefined) return value
  const problem = `${spec.name} must be ${spec.type.expected}, found ${shownValue(spec.name, text)}${why}`
  problems.push({ key: spec.name, message: `${origin}: ${problem}` })
  return undefined
}

function checkListeners({ settings, origins }: LoadedSettings): void {
  if (!settings.enableMetricsApi) return
  for (const setting of ['inferenceAddress', 'managementAddress'] as const) {
    if (sameAddress(settings[setting], settings.metricsAddress)) {
      throw new ServeError(
        'CONFIG',
        `${origins.metricsAddress}: metrics_address must differ from ${KEYS[setting].name}`,
      )
    }
  }
}

/** Whether two listeners use the same address. Port 0 takes any free port, so it never collides. */
export function sameAddress(a: ListenAddress, b: ListenAddress): boolean {
  if (a.kind === 'unix') return b.kind === 'unix' && a.path === b.path
  return b.kind === 'tcp' && a.port !== 0 && a.port === b.port && a.host === b.host
}

/** Every key with its effective value and its source, in the order of docs/configuration.md. */
export function shownSettings({
  settings,
  origins,
  entries,
}: Pick<LoadedSettings, 'settings' | 'origins' | 'entries'>): ShownSetting[] {
  return (Object.keys(KEYS) as (keyof Settings)[]).map((setting) => {
    const { name, fallback, doc } = KEYS[setting]
    const text = plain(settings[setting]) ?? entries.get(name)?.text ?? fallback ?? ''
    return {
      name,
      value: text === '' ? undefined : shownValue(name, text),
      source: origins[setting],
      fallback: fallback === '' ? undefined : fallback,
      meaning: doc,
    }
  })
}

/** The text of a primitive value; undefined for others. */
function plain(value: Settings[keyof Settings]): string | undefined {
  return typeof value === 'object' || value === undefined ? undefined : String(value)
}

/** Freezes a plain value and all values inside it. */
function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const inner of Object.values(value)) deepFreeze(inner)
  }
  return value
}
