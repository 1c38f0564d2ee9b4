import { watch, type FSWatcher } from 'node:fs'

/** Milliseconds without an event after which a save counts as ended: editors write in several steps. */
const QUIET_MS = 100
/** A file that is written for long is looked at meanwhile. */
const MOST_MS = 1000

/**
 * Tells when something happens in folders, not what: who hears of it compares the files. Each folder has a
 * watch of its own, since those of whole trees miss files on Linux that a rename has replaced.
 */
export class FolderWatch {
  readonly #watches = new Map<string, FSWatcher>()
  readonly #onChange: () => void
  #timer: NodeJS.Timeout | undefined
  #since = 0

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
    for (const [folder, watcher] of this.#watches) if (!folders.has(folder)) this.#forget(folder, watcher)
    let added = false
    for (const folder of folders) {
      if (this.#watches.has(folder)) continue
      const watcher = watchFolder(folder, this.#onEvent)
      if (watcher === undefined) continue
      watcher.on('error', () => {
        this.#forget(folder, watcher)
        this.#onEvent()
      })
      this.#watches.set(folder, watcher)
      added = true
    }
    return added
  }

  close(): void {
    clearTimeout(this.#timer)
    for (const watcher of this.#watches.values()) watcher.close()
    this.#watches.clear()
  }

  #forget(folder: string, watcher: FSWatcher): void {
    watcher.close()
    this.#watches.delete(folder)
  }

  readonly #onEvent = (): void => {
    const now = performance.now()
    if (this.#timer === undefined) this.#since = now
    clearTimeout(this.#timer)
    const wait = Math.max(0, Math.min(QUIET_MS, this.#since + MOST_MS - now))
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#onChange()
    }, wait)
  }
}

/** Undefined: the folder is gone. */
function watchFolder(folder: string, onEvent: () => void): FSWatcher | undefined {
  try {
    return watch(folder, onEvent)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw error
  }
}
