import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ServeError } from '../../common/errors.ts'
import { isKey } from './collect-entries.ts'
import { KEYS } from './keys.ts'
import { parseProperties, type Entry } from './properties.ts'
import { keptSettings, listSnapshots } from './snapshot-store.ts'

/** The newest snapshot, which a start found by itself. */
export interface LastSnapshot {
  readonly path: string
  /** The key `model_snapshot`; undefined: the file lacks it. */
  readonly models: Entry | undefined
  /** The keys of the server that wrote it. */
  readonly settings: readonly Entry[]
}

/** Completes the message of an error that the last snapshot causes. */
const ADVICE = 'start with --ncs to ignore it'

/**
 * Switches, and the position that makes a server less safe. Only a start that sets them itself gets this
 * position, never one that finds it in a snapshot.
 */
const UNSAFE: ReadonlyMap<string, string> = new Map([
  [KEYS.disableTokenAuthorization.name, 'true'],
  [KEYS.enableModelApi.name, 'true'],
  [KEYS.allowInsecureExposure.name, 'true'],
  [KEYS.allowPrivateUrls.name, 'true'],
  [KEYS.checkInferenceOrigin.name, 'false'],
  [KEYS.sandbox.name, 'off'],
  [KEYS.sandboxByModel.name, 'true'],
])

/**
 * The newest snapshot in a folder; undefined: there is none.
 * @throws ServeError CONFIG when it cannot be read
 */
export async function readLastSnapshot(folder: string): Promise<LastSnapshot | undefined> {
  const newest = (await listSnapshots(folder)).at(-1)
  if (newest === undefined) return undefined
  const path = join(folder, newest)
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    const why = (cause as Error).message
    throw new ServeError('CONFIG', `The snapshot ${path} cannot be read: ${why}; ${ADVICE}`, { cause })
  })
  // No variables: the snapshot holds values whose $$NAME$$ was already replaced.
  const entries = await withAdvice(path, () => parseProperties(text, path, undefined))
  const isModels = ({ name }: Entry): boolean => name === KEYS.modelSnapshot.name
  return { path, models: entries.findLast(isModels), settings: entries.filter((each) => !isModels(each)) }
}

/** Runs an action; its errors with a place in the snapshot also say how to start without it. */
export async function withAdvice<T>(path: string | undefined, action: () => T | Promise<T>): Promise<T> {
  try {
    return await action()
  } catch (thrown) {
    const { code, message } = ServeError.from(thrown)
    if (path === undefined || !message.startsWith(`${path}:`)) throw thrown
    throw new ServeError(code, `${message}; ${ADVICE}`, { cause: thrown })
  }
}

/** The settings that a start without a configuration file takes from the snapshot. Warns of both kinds. */
export function settingsToTake({ path, settings }: LastSnapshot, warnings: string[]): Entry[] {
  const isUnsafe = ({ name, text }: Entry): boolean => UNSAFE.get(name) === text.toLowerCase()
  const left = settings.filter(isUnsafe)
  const taken = settings.filter((entry) => !isUnsafe(entry))
  const names = [...new Set(taken.map(({ name }) => name))].filter(isKey)
  if (names.length > 0) {
    warnings.push(
      `No config.properties and no --ts-config: ${names.join(', ')} come from the snapshot ${path}, unless a flag or variable sets them; ${ADVICE}`,
    )
  }
  if (left.length > 0) {
    warnings.push(
      `${left.map(({ name, text }) => `${name}=${text}`).join(', ')} of the snapshot ${path} has no effect: a start must set it itself, by a flag or in a configuration file`,
    )
  }
  return taken
}

/** A warning when the configuration file is not as it was; in which way, one sees in both files. */
export function changesSince(
  { path, settings }: LastSnapshot,
  entries: ReadonlyMap<string, Entry>,
): string | undefined {
  const before = keptSettings(settings)
  const now = keptSettings(entries.values())
  const names = [...new Set([...before.keys(), ...now.keys()])].filter(
    (name) => isKey(name) && name !== KEYS.loadModels.name && before.get(name) !== now.get(name),
  )
  if (names.length === 0) return undefined
  return `These keys are not as in the snapshot ${path}, and this start’s values count: ${names.sort().join(', ')}`
}
