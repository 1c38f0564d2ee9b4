import { statSync, watch, type FSWatcher } from 'node:fs'
import { basename } from 'node:path'
import { startTimer } from '../../../common/timer.ts'

/** Milliseconds without an event after which a save counts as ended: editors write in several steps. */
const QUIET_MS = 100
/** A file that is written for long is looked at meanwhile. */
const MOST_MS = 1000

interface Watched {
  readonly watcher: FSWatcher
  /** Of the folder, not of its name: another one may have come in its place. */
  readonly inode: string | undefined
}

/**
 * Tells when something happens in folders, not what: who hears of it compares the files. Each folder has a
 * watch of its own, since those of whole trees miss files on Linux that a rename has replaced.
 */
export class FolderWatch {
  readonly #watches = new Map<string, Watched>()
  readonly #onChange: () => void
  #timer: NodeJS.Timeout | undefined
  #since = 0
  /** Something has happened since update() looked whether the folders are still those that are watched. */
  #unsure = false
  #closed = false

  /** `onChange` is called once for events in quick succession. */
  constructor(onChange: () => void) {
    this.#onChange = onChange
  }

  /**
   * Watches exactly these folders. Those that are gone are left out.
   * @returns whether some were added, so that something may have happened there before
   * @throws Error of the system, such as ENOSPC when it has no more watches
   */
  update(folders: ReadonlySet<string>): boolean {
    if (this.#closed) return false // a look that had begun before
    for (const [folder, { watcher, inode }] of this.#watches)
      if (!folders.has(folder) || (this.#unsure && inodeOf(folder) !== inode)) this.#forget(folder, watcher)
    this.#unsure = false
    let added = false
    for (const folder of folders) {
      if (this.#watches.has(folder)) continue
      const inode = inodeOf(folder)
      const watcher = watchFolder(folder)
      if (watcher === undefined) continue
      watcher.on('change', (event, name) => {
        // On Linux an event of this name also says that the folder is gone, whose inode another may get now.
        if (event === 'rename' && name === basename(folder)) this.#forget(folder, watcher)
        this.#onEvent()
      })
      watcher.on('error', () => {
        this.#forget(folder, watcher)
        this.#onEvent()
      })
      this.#watches.set(folder, { watcher, inode })
      added = true
    }
    return added
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
    for (const { watcher } of this.#watches.values()) watcher.close()
    this.#watches.clear()
  }

  #forget(folder: string, watcher: FSWatcher): void {
    watcher.close()
    if (this.#watches.get(folder)?.watcher === watcher) this.#watches.delete(folder)
  }

  readonly #onEvent = (): void => {
    this.#unsure = true
    const now = performance.now()
    if (this.#timer === undefined) this.#since = now
    clearTimeout(this.#timer)
    const wait = Math.max(0, Math.min(QUIET_MS, this.#since + MOST_MS - now))
    this.#timer = startTimer(() => {
      this.#timer = undefined
      this.#onChange()
    }, wait)
  }
}

/** Undefined: the folder is gone. */
function watchFolder(folder: string): FSWatcher | undefined {
  try {
    return watch(folder)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw error
  }
}

/** Undefined: the folder is gone. */
function inodeOf(folder: string): string | undefined {
  try {
    const { dev, ino } = statSync(folder, { bigint: true })
    return `${dev}:${ino}`
  } catch {
    return undefined
  }
}
