import { constants, watch, type FSWatcher } from 'node:fs'
import { open, realpath, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { fileStamp } from '../../common/files.ts'

/** A change is noticed within this time even where the system does not tell of it. */
const LOOK_EVERY_MS = 500
/** Largest file, in bytes: tens of thousands of keys. */
const MAX_BYTES = 16 * 1_048_576

interface WatchedFileOptions {
  readonly path: string
  /** What the file holds now; what it throws is told to `warn`, and the file counts as read. */
  readonly onText: (text: string) => void
  readonly warn: (message: string) => void
  /** Begins a warning that the file cannot be used. Default: nothing does. */
  readonly complaint?: string
}

/**
 * A file of those who are let in, which is read again when it has changed. While it cannot be used, what it
 * held last is in force. It warns when every user of the machine may change the file.
 */
export class WatchedFile {
  readonly #options: WatchedFileOptions
  #watcher: FSWatcher | undefined
  #timer: NodeJS.Timeout | undefined
  /** Tells one state of the file from another. Empty: what is there could not be read. */
  #seen = ''
  /** The error of the system with which the last reading failed. */
  #fault: string | undefined
  /** What every user may write: the file, or its folder. */
  #openPath: string | undefined
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
    onText(await this.#text())
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
    const { path, onText, warn, complaint = '' } = this.#options
    this.#looking = true
    while (this.#again && !this.#closed) {
      this.#again = false
      // By its code alone: one removal can fail at several steps, and is one change.
      const state = await stateOf(path).catch((error: unknown) => String((error as { code?: string }).code))
      if (state === this.#seen) continue
      this.#seen = state
      try {
        const text = await this.#text()
        this.#fault = undefined
        if (!this.#closed) onText(text)
      } catch (error) {
        const { code, syscall, message } = error as NodeJS.ErrnoException
        const fault = syscall === undefined ? undefined : code
        if (fault === undefined || fault !== this.#fault)
          warn(`${complaint}${message}; what it held before stays in force`)
        this.#fault = fault
        // The file need not change before it can be read.
        if (fault !== undefined) this.#seen = ''
      }
    }
    this.#looking = false
  }

  /** Warns of who may write when it comes about, not with every change of the file. */
  async #text(): Promise<string> {
    const { path, warn } = this.#options
    const { text, mode } = await contentsOf(path)
    const before = this.#openPath
    this.#openPath = mode & WRITABLE_BY_ALL ? path : await openFolderOf(path)
    const now = this.#openPath
    if (now !== undefined && now !== before)
      warn(`${now} can be changed by every user of this machine: chmod o-w ${now}`)
    return text
  }
}

async function stateOf(path: string): Promise<string> {
  return [fileStamp(await stat(path, { bigint: true })), await openFolderOf(path)].join(' ')
}

/** A folder of the file, or of what a link leads to, in which every user may put another in its place. */
async function openFolderOf(path: string): Promise<string | undefined> {
  for (const folder of new Set([dirname(path), dirname(await realpath(path))])) {
    const { mode } = await stat(folder)
    if (mode & WRITABLE_BY_ALL && !(mode & STICKY)) return folder
  }
  return undefined
}

const WRITABLE_BY_ALL = 0o0002
/** In such a folder, only its owner may rename or remove a file. */
const STICKY = 0o1000

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
