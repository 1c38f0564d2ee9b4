import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { Parser, type ReadEntry } from 'tar'
import { EntryGuard, refusedEntry, type UnpackLimits } from './entry-guard.ts'
import { EntryWriter } from './entry-writer.ts'

/**
 * Unpacks a compressed tar into an existing, empty folder. The first part of each name is dropped, as TorchServe does.
 * @throws ServeError INVALID_ARCHIVE for a refused entry; errors of tar and of the file system as they are
 */
export async function unpackTar(file: string, folder: string, limits: UnpackLimits): Promise<void> {
  const source = createReadStream(file)
  const unpacking = new TarUnpacking(folder, limits)
  const { parser } = unpacking
  source.once('error', (error) => unpacking.fail(error))
  source.on('data', (chunk) => {
    if (!parser.write(chunk as Buffer)) source.pause()
  })
  parser.on('drain', () => source.resume())
  source.once('end', () => parser.end())
  try {
    await unpacking.finished
  } finally {
    source.destroy()
    if (!source.closed) await once(source, 'close')
  }
}

/** One pass over the entries: the parser hands out the next one when the one before was read to its end. */
class TarUnpacking {
  readonly parser: Parser
  /** Settles when nothing is read or written any more. */
  readonly finished: Promise<void>
  readonly #guard: EntryGuard
  readonly #writer: EntryWriter
  #writing: Promise<void> = Promise.resolve()
  #current: ReadEntry | undefined
  #stop!: (error: unknown) => void

  constructor(folder: string, limits: UnpackLimits) {
    this.#guard = new EntryGuard(limits)
    this.#writer = new EntryWriter(folder)
    this.parser = new Parser({ strict: true })
    const parsed = new Promise<void>((resolve, reject) => {
      this.#stop = reject
      this.parser.once('end', resolve)
    })
    this.parser.on('error', (error: Error) => this.fail(error))
    this.parser.on('entry', (entry: ReadEntry) => this.#entry(entry))
    this.parser.on('ignoredEntry', (entry: ReadEntry) => this.#ignored(entry))
    this.finished = this.#settle(parsed)
  }

  fail(error: unknown): void {
    this.#stop(error)
    this.#current?.destroy(error)
  }

  async #settle(parsed: Promise<void>): Promise<void> {
    try {
      await parsed
    } finally {
      await this.#writing
    }
  }

  #entry(entry: ReadEntry): void {
    // An entry that is cut short says so; whoever cut it has reported why.
    entry.on('error', () => undefined)
    this.#current = entry
    this.#writing = this.#unpack(entry).catch((error: unknown) => this.fail(error))
  }

  /** What the parser does not know, or finds too long, is refused instead of left out. */
  #ignored(entry: ReadEntry): void {
    this.fail(refusedEntry(entry.path, entry.meta ? 'its header is too long' : 'its kind is unknown'))
  }

  async #unpack(entry: ReadEntry): Promise<void> {
    const kind = kindOf(entry)
    const name = withoutFirstPart(entry.path)
    if (name === '') {
      if (kind === 'file') throw refusedEntry(entry.path, 'it stands outside the leading folder')
      entry.resume()
      return
    }
    this.#guard.admit(name, kind, entry.size)
    if (kind === 'file') return this.#writer.file(name, entry.mode ?? 0, entry)
    await this.#writer.folder(name)
    entry.resume()
  }
}

function kindOf(entry: ReadEntry): 'file' | 'folder' {
  if (entry.type === 'Directory') return 'folder'
  if (entry.type === 'File' || entry.type === 'OldFile' || entry.type === 'ContiguousFile') return 'file'
  const link = entry.type === 'Link' || entry.type === 'SymbolicLink'
  throw refusedEntry(entry.path, link ? 'it is a link' : 'it is neither a file nor a folder')
}

/** `model/a/b` -> `a/b`. Absolute names and a first part of `..` are refused here, before they are hidden. */
function withoutFirstPart(path: string): string {
  if (path.startsWith('/')) throw refusedEntry(path, 'the name is absolute')
  if (/^\.\.(\/|$)/.test(path)) throw refusedEntry(path, 'the name leads out of the archive (..)')
  const slash = path.indexOf('/')
  return slash < 0 ? '' : path.slice(slash + 1)
}
