import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { Header, Pax } from 'tar'
import { ServeError } from '../common/errors.ts'
import { EntryGuard, refusedEntry, EntryWriter } from './entries.ts'
import type { HashedFile } from './hashed-file.ts'
import type { UnpackBudget } from './unpack-budget.ts'

const BLOCK = 512
/** Large chunks are faster: each costs a round trip to zlib's thread and one to the disk's. */
const CHUNK_BYTES = 1024 ** 2
/** Maximum size of an extended header: many times a name of 1024 bytes and some attributes. */
const MAX_EXTENSION_BYTES = 64 * 1024
/** Maximum headers before one entry: pax and GNU's two kinds, each local and global. */
const MAX_EXTENSIONS = 8
/** Maximum padding after the end of the archive: packers fill up a tape record, 10 KiB by default. */
const MAX_TAIL_BYTES = 1024 ** 2

/**
 * Unpacks a compressed tar into an existing, empty folder. Drops the first segment of each name, as
 * TorchServe does. The format is POSIX.1-2001 (pax) with GNU tar's long names; node-tar parses the headers.
 * @throws ServeError INVALID_ARCHIVE for a refused entry; errors of zlib, node-tar and of the file system
 */
export async function unpackTar(file: HashedFile, folder: string, budget: UnpackBudget): Promise<void> {
  const gunzip = createGunzip({ chunkSize: CHUNK_BYTES })
  await pipeline(file.read(), gunzip, async (inflated: AsyncIterable<Buffer>) => {
    await new TarUnpacking(inflated, folder, budget).run()
  })
}

/** One pass over the blocks, which reads at most one chunk ahead of what it writes. */
class TarUnpacking {
  readonly #reader: ByteReader
  readonly #guard: EntryGuard
  readonly #writer: EntryWriter
  readonly #budget: UnpackBudget
  /** Extended headers of the next entry, and of all later ones. */
  #own: Pax | undefined
  #common: Pax | undefined
  #extensions = 0
  #entries = 0

  constructor(inflated: AsyncIterable<Buffer>, folder: string, budget: UnpackBudget) {
    this.#budget = budget
    this.#reader = new ByteReader(counted(inflated, budget))
    this.#guard = new EntryGuard(budget)
    this.#writer = new EntryWriter(folder, budget)
  }

  async run(): Promise<void> {
    let zeros = 0
    while (zeros < 2) {
      const block = await this.#reader.exactly(BLOCK)
      if (block === undefined) break
      const header = new Header(block, 0, this.#own, this.#common)
      zeros = header.nullBlock ? zeros + 1 : 0
      if (zeros === 0) await this.#take(header)
    }
    if (this.#entries === 0) throw new Error('it has no entries')
    await this.#skipTail()
  }

  async #take(header: Header): Promise<void> {
    const { size } = header
    // node-tar prepends the header's prefix even to a complete name from an extended header.
    const path = isExtension(header) ? header.path : (this.#own?.path ?? header.path)
    if (!header.cksumValid) throw new Error('a header has a wrong checksum')
    if (!path) throw new Error('an entry has no name')
    if (size === undefined || !Number.isSafeInteger(size)) throw refusedEntry(path, 'it has no size')
    if (isExtension(header)) return this.#extend(header, path, size)
    this.#budget.count(++this.#entries)
    await this.#unpack(header, path, size)
    this.#own = undefined
    this.#extensions = 0
  }

  async #extend({ type }: Header, path: string, size: number): Promise<void> {
    if (size > MAX_EXTENSION_BYTES) throw refusedEntry(path, 'its header is too long')
    if (++this.#extensions > MAX_EXTENSIONS) throw refusedEntry(path, 'it has too many headers')
    const text = ((await this.#padded(size)) ?? Buffer.alloc(0)).toString()
    const value = text.replace(/\0.*$/s, '')
    if (type === 'GlobalExtendedHeader') this.#common = Pax.parse(text, this.#common, true)
    else if (type === 'ExtendedHeader' || type === 'OldExtendedHeader') this.#own = Pax.parse(text, this.#own)
    else if (type === 'NextFileHasLongLinkpath') this.#own = withField(this.#own, { linkpath: value })
    else this.#own = withField(this.#own, { path: value })
  }

  async #unpack(header: Header, path: string, size: number): Promise<void> {
    const kind = kindOf(header, path)
    const name = withoutFirstPart(path)
    if (name === '') {
      if (kind === 'file') throw refusedEntry(path, 'it is outside the leading folder')
      return
    }
    this.#guard.admit(name, kind, size)
    if (kind === 'folder') return this.#writer.folder(name)
    await this.#writer.file(name, header.mode ?? 0, size, this.#reader.each(size))
    await this.#padding(size)
  }

  async #padded(size: number): Promise<Buffer | undefined> {
    const content = size === 0 ? undefined : await this.#reader.exactly(size)
    await this.#padding(size)
    return content
  }

  async #padding(size: number): Promise<void> {
    const over = size % BLOCK
    if (over > 0) await this.#reader.exactly(BLOCK - over)
  }

  async #skipTail(): Promise<void> {
    let tail = 0
    for (let part; (part = await this.#reader.some(CHUNK_BYTES)) !== undefined;) {
      tail += part.length
      if (tail > MAX_TAIL_BYTES)
        throw new ServeError(
          'INVALID_ARCHIVE',
          `The archive has more than ${MAX_TAIL_BYTES} bytes after its end.`,
        )
    }
  }
}

async function* counted(chunks: AsyncIterable<Buffer>, budget: UnpackBudget): AsyncGenerator<Buffer, void> {
  for await (const chunk of chunks) {
    budget.inflate(chunk.length)
    yield chunk
  }
}

function withField(own: Pax | undefined, field: { path: string } | { linkpath: string }): Pax {
  const pax = own ?? new Pax({})
  if ('path' in field) pax.path = field.path
  else pax.linkpath = field.linkpath
  return pax
}

const EXTENSIONS: ReadonlySet<string> = new Set([
  'ExtendedHeader',
  'OldExtendedHeader',
  'GlobalExtendedHeader',
  'NextFileHasLongPath',
  'OldGnuLongPath',
  'NextFileHasLongLinkpath',
])

function isExtension({ type }: Header): boolean {
  return EXTENSIONS.has(type)
}

/** Unknown kinds are refused, not skipped. */
function kindOf(header: Header, path: string): 'file' | 'folder' {
  const type: string = header.type
  if (type === 'Directory') return 'folder'
  if (type === 'File' || type === 'OldFile' || type === 'ContiguousFile') return 'file'
  if (type === 'Link' || type === 'SymbolicLink') throw refusedEntry(path, 'it is a link')
  if (type === 'CharacterDevice' || type === 'BlockDevice' || type === 'FIFO')
    throw refusedEntry(path, 'it is neither a file nor a folder')
  throw refusedEntry(path, 'its kind is not supported')
}

/** `model/a/b` -> `a/b`. Refuses absolute names and a first segment `..`, which dropping it would hide. */
function withoutFirstPart(path: string): string {
  if (path.startsWith('/')) throw refusedEntry(path, 'the name is absolute')
  if (/^\.\.(\/|$)/.test(path)) throw refusedEntry(path, 'the name leads out of the archive (..)')
  const slash = path.indexOf('/')
  return slash < 0 ? '' : path.slice(slash + 1)
}

/** Reads counts of bytes from an iterable of chunks. Reads at most to the end of the chunk that it needs. */
export class ByteReader {
  readonly #chunks: AsyncIterator<Buffer>
  #rest: Buffer = Buffer.alloc(0)

  constructor(chunks: AsyncIterable<Buffer>) {
    this.#chunks = chunks[Symbol.asyncIterator]()
  }

  /** The next bytes, between 1 and `bytes` of them; undefined at the end. */
  async some(bytes: number): Promise<Buffer | undefined> {
    while (this.#rest.length === 0) {
      const next = await this.#chunks.next()
      if (next.done === true) return undefined
      this.#rest = next.value
    }
    const part = this.#rest.subarray(0, bytes)
    this.#rest = this.#rest.subarray(part.length)
    return part
  }

  /** The next `bytes` bytes; undefined at the end. @throws Error at a premature end */
  async exactly(bytes: number): Promise<Buffer | undefined> {
    const first = await this.some(bytes)
    if (first === undefined || first.length === bytes) return first
    const parts = [first]
    for await (const part of this.each(bytes - first.length)) parts.push(part)
    return Buffer.concat(parts)
  }

  /** The next `bytes` bytes, in the chunks in which they arrive. @throws Error at a premature end */
  async *each(bytes: number): AsyncGenerator<Buffer, void> {
    for (let left = bytes; left > 0;) {
      const part = await this.some(left)
      if (part === undefined) throw new Error(`it ends ${left} bytes too early`)
      left -= part.length
      yield part
    }
  }
}
