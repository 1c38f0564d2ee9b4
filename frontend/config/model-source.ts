import { resolve } from 'node:path'
import { KEYS } from './keys.ts'
import type { LastSnapshot } from './last-snapshot.ts'
import type { Entry } from './properties.ts'

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
