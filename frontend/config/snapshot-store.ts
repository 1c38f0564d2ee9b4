import { readdir, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { makeFolder, putInPlace } from '../../common/files.ts'
import type { LoadedSettings } from './build-settings.ts'
import { formatProperty, type Entry } from './properties.ts'
import { KEYS, KEYS_BY_NAME } from './keys.ts'
import type { ModelSnapshot, SnapshotContent } from './model-snapshot.ts'
import { PATH } from './value-types.ts'

/** Snapshots that are kept; the oldest are removed. */
const MAX_SNAPSHOTS = 50

/** When a snapshot was written: after start, after a change, at shutdown. */
export type SnapshotKind = 'startup' | 'snapshot' | 'shutdown'

const FILE_NAME =
  /^\d{4}(0[1-9]|1[0-2])([0-2]\d|3[01])([01]\d|2[0-3])([0-5]\d){2}\d{3}-(startup|snapshot|shutdown)\.cfg$/

/**
 * Flags that count for one start only: a restart without them must be as safe as a first start. TorchServe
 * keeps them.
 */
const NOT_KEPT: ReadonlySet<string> = new Set(['--disable-token-auth', '--enable-model-api', '--models'])

/** The folder of the snapshots (docs/snapshots.md). */
export function snapshotFolder(logLocation: string): string {
  return join(logLocation, 'config')
}

/** Names of the snapshots in a folder, oldest first; empty when the folder does not exist. */
export async function listSnapshots(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  })
  return names.filter((name) => FILE_NAME.test(name)).sort()
}

/** Writes snapshots one after the other, each atomically, and removes the oldest beyond the limit. */
export class SnapshotStore {
  readonly #folder: string
  readonly #settings: string
  readonly #max: number
  #last = 0
  #queue: Promise<void> = Promise.resolve()

  constructor(loaded: Pick<LoadedSettings, 'settings' | 'entries'>, max = MAX_SNAPSHOTS) {
    this.#folder = snapshotFolder(loaded.settings.logLocation)
    const lines = [...keptSettings(loaded.entries.values())].map(
      ([name, value]) => `${formatProperty(name, value)}\n`,
    )
    this.#settings = lines.sort().join('')
    this.#max = max
  }

  /** @throws errors of the file system */
  write(kind: SnapshotKind, content: SnapshotContent): Promise<void> {
    const written = this.#queue.then(() => this.#write(kind, content))
    this.#queue = written.catch(() => undefined)
    return written
  }

  async #write(kind: SnapshotKind, content: SnapshotContent): Promise<void> {
    await makeFolder(this.#folder, 0o700)
    const earlier = await listSnapshots(this.#folder)
    const created = this.#nextTime(earlier.at(-1))
    const name = `${timeStamp(created)}-${kind}.cfg`
    const modelCount = Object.values(content.models).reduce(
      (sum, versions) => sum + Object.keys(versions).length,
      0,
    )
    const unloaded = content.unloaded?.map((model) => ({ ...model, location: wholePath(model.location) }))
    const snapshot: ModelSnapshot = {
      ...{ name, modelCount, created: Date.now() },
      ...content,
      ...(unloaded !== undefined && { unloaded }),
    }
    const line = formatProperty(KEYS.modelSnapshot.name, JSON.stringify(snapshot, undefined, 2))
    await writeWhole(join(this.#folder, name), `#Saving snapshot\n${this.#settings}${line}\n`)
    await this.#prune(earlier)
  }

  /** The newest snapshot is found by name, so names must rise even when the clock was set back. */
  #nextTime(newest: string | undefined): number {
    this.#last = Math.max(Date.now(), this.#last + 1)
    if (newest !== undefined && timeStamp(this.#last) <= newest.slice(0, 17)) {
      this.#last = timeOf(newest.slice(0, 17)) + 1
    }
    return this.#last
  }

  async #prune(earlier: readonly string[]): Promise<void> {
    const tooMany = earlier.slice(0, Math.max(0, earlier.length + 1 - this.#max))
    for (const name of tooMany) await rm(join(this.#folder, name), { force: true })
  }
}

/** What a snapshot keeps of entries, by key: keys of the file, with whole paths. */
export function keptSettings(entries: Iterable<Entry>): Map<string, string> {
  const kept = new Map<string, string>()
  for (const { name, text, origin } of entries) {
    const spec = KEYS_BY_NAME.get(name)
    if (NOT_KEPT.has(origin) || spec?.from === 'environment' || name === KEYS.modelSnapshot.name) continue
    kept.set(name, spec?.type === PATH ? resolve(text) : text)
  }
  return kept
}

/** A relative path belongs to the working folder of this start. A name in the store and a URL stay. */
function wholePath(location: string): string {
  const isPath = location.includes('/') && !/^[a-z][a-z0-9+.-]*:/i.test(location)
  return isPath ? resolve(location) : location
}

/** Mode 0600: a snapshot contains the configuration, passwords included. */
async function writeWhole(path: string, text: string): Promise<void> {
  const beside = `${path}.part`
  try {
    await rm(beside, { force: true })
    // A new file: an old one, or a link, could be open to others.
    await writeFile(beside, text, { flag: 'wx', mode: 0o600, flush: true })
    await putInPlace(beside, path)
  } finally {
    await rm(beside, { force: true })
  }
}

/** yyyyMMddHHmmssSSS in UTC, so that daylight saving cannot turn it back. */
function timeStamp(time: number): string {
  return new Date(time).toISOString().replace(/\D/g, '')
}

function timeOf(stamp: string): number {
  const [, ...parts] = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d{3})$/.exec(stamp) ?? []
  const [year, month, day, hour, minute, second, ms] = parts.map(Number) as [number, ...number[]]
  return Date.UTC(year, month! - 1, day, hour, minute, second, ms)
}
