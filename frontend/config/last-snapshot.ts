import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { ServeError } from '../../common/errors.ts'
import type { LoadedSettings } from './build-settings.ts'
import { isKey } from './collect-entries.ts'
import { KEYS } from './keys.ts'
import { parseProperties, type Entry, shownValue } from './properties.ts'
import { keptSettings, listSnapshots } from './snapshot-store.ts'

/** The newest snapshot, which a start found by itself. */
export interface LastSnapshot {
  readonly path: string
  /** The key `model_snapshot`. */
  readonly models: Entry
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
])

/**
 * The newest snapshot in a folder; undefined: there is none.
 * @throws ServeError CONFIG when it cannot be read or is not whole: a start would lose its models
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
  const models = entries.findLast(isModels)
  const hasNul = text.includes('\0')
  if (models === undefined || hasNul) {
    const why = hasNul ? 'it contains NUL bytes' : `it ${text === '' ? 'is empty' : 'has no model_snapshot'}`
    const advice = `remove it to start from the one before it, or ${ADVICE}`
    throw new ServeError('CONFIG', `The snapshot ${path} is damaged: ${why}; ${advice}`)
  }
  return { path, models, settings: entries.filter((each) => !isModels(each)) }
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

/**
 * The settings that a start without a configuration file takes from the snapshot. Warns of those that it
 * leaves there.
 */
export function settingsToTake({ path, settings }: LastSnapshot, warnings: string[]): Entry[] {
  const isUnsafe = ({ name, text }: Entry): boolean => UNSAFE.get(name) === text.toLowerCase()
  const left = settings.filter(isUnsafe)
  if (left.length > 0) {
    warnings.push(
      `${left.map(({ name, text }) => `${name}=${text}`).join(', ')} of the snapshot ${path} has no effect: a start must set it itself, by a flag or in a configuration file`,
    )
  }
  return settings.filter((entry) => !isUnsafe(entry))
}

/**
 * A snapshot sets no command that this start would run. To start without it would confine no worker.
 * @throws ServeError CONFIG when a wrapper comes from the snapshot alone
 */
export function refuseWrapper(
  { path, settings }: LastSnapshot,
  { entries, settings: { models } }: LoadedSettings,
): void {
  const inModels = Object.values(models).flatMap((versions) => Object.values(versions))
  const names = [
    KEYS.workerWrapper.name,
    ...(inModels.some(({ workerWrapper }) => workerWrapper !== undefined) ? [KEYS.models.name] : []),
  ]
  const taken = names.find((name) => settings.includes(entries.get(name)!))
  if (taken === undefined) return
  throw new ServeError(
    'CONFIG',
    `${path}: ${taken} with a worker wrapper is not taken from a snapshot: set it in a configuration file`,
  )
}

/** A line about the settings that come from the snapshot; undefined: this start sets all of them itself. */
export function takenSettings(
  { path, settings }: LastSnapshot,
  entries: ReadonlyMap<string, Entry>,
): string | undefined {
  const taken = settings.filter((entry) => isKey(entry.name) && entries.get(entry.name) === entry)
  if (taken.length === 0) return undefined
  const shown = taken.map(({ name, text }) => `${name}=${shownValue(name, text)}`)
  return `No config.properties and no --ts-config, so from the snapshot ${path}: ${shown.join(', ')}; ${ADVICE}`
}

/** A warning when the configuration file is not as it was. Flags and variables belong to one start. */
export function changesSince(
  { path, settings }: LastSnapshot,
  entries: ReadonlyMap<string, Entry>,
  file: readonly Entry[],
): string | undefined {
  const before = keptSettings(settings)
  const now = keptSettings(entries.values())
  const inFile = new Set(file.map(({ name }) => name))
  const changed = [...new Set([...before.keys(), ...inFile])].filter(
    (name) => isKey(name) && name !== KEYS.loadModels.name && before.get(name) !== now.get(name),
  )
  const isOfFile = (name: string): boolean => !now.has(name) || file.includes(entries.get(name)!)
  const shown = changed
    .filter(isOfFile)
    .sort()
    .map((name) => change(name, before.get(name), now.get(name)))
  return shown.length === 0 ? undefined : `Changed since the snapshot ${path}: ${shown.join(', ')}`
}

function change(name: string, before: string | undefined, now: string | undefined): string {
  const show = (text: string | undefined): string => (text === undefined ? 'not set' : shownValue(name, text))
  return `${name}=${show(now)} (was ${show(before)})`
}

/** Which models a start loads (docs/snapshots.md). */
export interface ModelSource {
  /** The `model_snapshot` that is restored; undefined: `load_models` says which models are loaded. */
  readonly snapshot: Entry | undefined
  /** For people: where the models come from, and how else to start. */
  readonly line: string
  /** Completes the message of a model of the snapshot that cannot be loaded; else empty. */
  readonly hint: string
}

/**
 * Chooses between the snapshot and `load_models`. The last snapshot counts unless this start says otherwise:
 * with `--models`, or with a `load_models` other than when the snapshot was written.
 * @param entries the winning entries of this start, without the last snapshot's models
 */
export function chooseModels(
  entries: ReadonlyMap<string, Entry>,
  last: LastSnapshot | undefined,
  byFlag: boolean,
): ModelSource {
  const load = entries.get(KEYS.loadModels.name)
  const snapshot = last?.models ?? entries.get(KEYS.modelSnapshot.name)
  if (snapshot === undefined) return { snapshot, line: loadLine(load), hint: '' }
  const where = last === undefined ? snapshot.origin : `the snapshot ${last.path}`
  if (load !== undefined && (byFlag || isChanged(load, last))) {
    const why = byFlag ? '' : ', which has changed since'
    return { snapshot: undefined, line: `${loadLine(load)}${why}, not from ${where}`, hint: '' }
  }
  if (last === undefined) {
    const hint = ` (model_snapshot at ${where}; remove it, or put the archive back)`
    return { snapshot, line: `Models come from model_snapshot (${where})`, hint }
  }
  const shadowed = load === undefined || isOf(last, load) ? '' : `, not from load_models (${load.origin})`
  return {
    snapshot,
    line: `Models come from ${where}${shadowed}; start with --ncs to ignore it`,
    hint: ` (model_snapshot at ${snapshot.origin}${otherStore(entries, last)}; start with --ncs to ignore it)`,
  }
}

function loadLine(load: Entry | undefined): string {
  if (load === undefined)
    return 'No models to load: no --models, no load_models, and no snapshot was read (--ncs and --ts-config leave it out)'
  return `Models come from ${load.origin === '--models' ? load.origin : `load_models (${load.origin})`}`
}

/** Without the last snapshot, a file that has `model_snapshot` says which models it means. */
function isChanged({ text }: Entry, last: LastSnapshot | undefined): boolean {
  return last !== undefined && text !== settingOf(last, KEYS.loadModels.name)
}

function isOf({ path }: LastSnapshot, { origin }: Entry): boolean {
  return origin.startsWith(`${path}:`)
}

/** An archive that is missing may be in the folder where the snapshot's server looked for it. */
function otherStore(entries: ReadonlyMap<string, Entry>, last: LastSnapshot): string {
  const then = settingOf(last, KEYS.modelStore.name)
  const now = entries.get(KEYS.modelStore.name)?.text
  if (then === undefined || now === undefined || resolve(then) === resolve(now)) return ''
  return `, which was written with the model store ${then}`
}

function settingOf({ settings }: LastSnapshot, key: string): string | undefined {
  return settings.findLast(({ name }) => name === key)?.text
}
