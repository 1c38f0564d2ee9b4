import { constants, watch, type FSWatcher } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { fileStamp } from '../../common/file-stamp.ts'

/** A change is noticed within this time even where the system does not tell of it. */
const LOOK_EVERY_MS = 500
/** Largest file, in bytes: tens of thousands of keys. */
const MAX_BYTES = 16 * 1_048_576

interface WatchedFileOptions {
  readonly path: string
  /**
   * What the file holds now, and its mode; what it throws is told to `warn`, and the file counts as read.
   */
  readonly onText: (text: string, mode: number) => void
  readonly warn: (message: string) => void
}

/** A file that is read again when it has changed. While it cannot be used, what it held last is in force. */
export class WatchedFile {
  readonly #options: WatchedFileOptions
  #watcher: FSWatcher | undefined
  #timer: NodeJS.Timeout | undefined
  /** Tells one state of the file from another. */
  #seen = ''
  #looking = false
  #again = false
  #closed = false

  constructor(options: WatchedFileOptions) {
    this.#options = options
  }

  /** Reads the file, and from then on watches it. Rejects if it cannot be read or used. */
  async open(): Promise<void> {
    const { path, onText } = this.#options
    this.#seen = await stateOf(path)
    const { text, mode } = await contentsOf(path)
    onText(text, mode)
    this.#timer = setInterval(this.#look, LOOK_EVERY_MS).unref()
    try {
      // The folder: editors and our command put a new file in the place of the old one.
      this.#watcher = watch(dirname(path), { persistent: false }, this.#look)
      this.#watcher.on('error', () => this.#watcher?.close())
    } catch {
      // Too many watches: the timer is left.
    }
  }

  close(): void {
    this.#closed = true
    clearInterval(this.#timer)
    this.#watcher?.close()
  }

  readonly #look = (): void => {
    this.#again = true
    if (!this.#looking) void this.#read()
  }

  async #read(): Promise<void> {
    const { path, onText, warn } = this.#options
    this.#looking = true
    while (this.#again && !this.#closed) {
      this.#again = false
      const state = await stateOf(path).catch((error: unknown) => `unreadable: ${(error as Error).message}`)
      if (state === this.#seen) continue
      this.#seen = state
      try {
        const { text, mode } = await contentsOf(path)
        if (!this.#closed) onText(text, mode)
      } catch (error) {
        warn(`${(error as Error).message}; what it held before stays in force`)
      }
    }
    this.#looking = false
  }
}

async function stateOf(path: string): Promise<string> {
  return fileStamp(await stat(path, { bigint: true }))
}

/** Opening a pipe would wait for its writer for ever, and a device may have no end. */
async function contentsOf(path: string): Promise<{ text: string; mode: number }> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const facts = await file.stat()
    if (!facts.isFile()) throw new Error(`${path} must be a regular file`)
    if (facts.size > MAX_BYTES) throw new Error(`${path} must have at most ${MAX_BYTES} bytes`)
    return { text: await file.readFile('utf8'), mode: facts.mode }
  } finally {
    await file.close()
  }
}
