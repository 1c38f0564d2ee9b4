import * as zlib from 'node:zlib'
import yauzl, { type Entry, type ZipFile } from 'yauzl'
import { Readable } from 'node:stream'
import { EntryGuard, refusedEntry, INVISIBLE_NAME, shownName, EntryWriter } from './entries.ts'
import type { HashedFile } from './hashed-file.ts'
import type { UnpackBudget } from './unpack-budget.ts'

const FILE_TYPE = 0o170000
const REGULAR = 0o100000
const FOLDER = 0o040000

/**
 * Unpacks a zip into an existing, empty folder. Checks the declared values of all entries before it writes
 * the first, then holds the content to them.
 * @throws ServeError INVALID_ARCHIVE for a refused entry; errors of yauzl and of the file system
 */
export async function unpackZip(file: HashedFile, folder: string, budget: UnpackBudget): Promise<void> {
  await judge(await read(file), budget)
  const zip = await read(file)
  const writer = new EntryWriter(folder, budget)
  for await (const entry of zip.eachEntry()) await write(zip, entry, writer, budget)
}

/** Names are decoded below, so that one set of rules covers every archive format. */
function read(file: HashedFile): Promise<ZipFile> {
  const options = { decodeStrings: false, autoClose: false }
  return yauzl.fromRandomAccessReaderPromise(new ZipSource(file), file.size, options)
}

/** The bytes for yauzl. */
class ZipSource extends yauzl.RandomAccessReader {
  readonly #file: HashedFile

  constructor(file: HashedFile) {
    super()
    this.#file = file
  }

  override _readStreamForRange(start: number, end: number): Readable {
    return Readable.from(this.#file.read(start, end), { objectMode: false })
  }
}

async function judge(zip: ZipFile, budget: UnpackBudget): Promise<void> {
  budget.count(zip.entryCount)
  const guard = new EntryGuard(budget)
  const places: Place[] = []
  for await (const entry of zip.eachEntry()) {
    const name = nameOf(entry)
    const isFolder = name.endsWith('/')
    // Before CP437 becomes text: there 0x01 is a smiley.
    if (entry.fileNameRaw.some((byte) => byte < 0x20 || byte === 0x7f))
      throw refusedEntry(name, INVISIBLE_NAME)
    refuseKind(name, entry, isFolder)
    guard.admit(name, isFolder ? 'folder' : 'file', entry.uncompressedSize)
    if (!isFolder && !entry.canDecodeFileData())
      throw refusedEntry(name, 'its encryption or compression is not supported')
    const { fileDataStart } = await zip.readLocalFileHeaderPromise(entry, { minimal: true })
    places.push({
      name,
      start: entry.relativeOffsetOfLocalHeader,
      end: fileDataStart + entry.compressedSize,
    })
  }
  refuseOverlaps(places)
}

/** Position of an entry in the file, with its header. */
interface Place {
  readonly name: string
  readonly start: number
  readonly end: number
}

/** Overlapping entries make a bomb that no entry's ratio shows (David Fifield, "A better zip bomb", 2019). */
function refuseOverlaps(places: Place[]): void {
  places.sort((a, b) => a.start - b.start)
  places.forEach(({ name, start }, index) => {
    const before = places[index - 1]
    if (before !== undefined && start < before.end)
      throw refusedEntry(name, `it overlaps the entry ${shownName(before.name)}`)
  })
}

async function write(zip: ZipFile, entry: Entry, writer: EntryWriter, budget: UnpackBudget): Promise<void> {
  const name = nameOf(entry)
  if (name.endsWith('/')) return writer.folder(name)
  const content = await zip.openReadStreamPromise(entry)
  // yauzl only emits its errors. One that comes before the stream is read would be lost, and its reader wait
  // for ever; a destroyed stream gives it to every reader.
  content.on('error', (error) => content.destroy(error))
  const checked = verified(name, content, entry.crc32, budget)
  await writer.file(name, unixMode(entry), entry.uncompressedSize, checked)
}

function nameOf(entry: Entry): string {
  const { generalPurposeBitFlag, fileNameRaw, extraFields } = entry
  return yauzl.getFileNameLowLevel(generalPurposeBitFlag, fileNameRaw, extraFields, true)
}

/**
 * The content, checked against its checksum where Node can compute one (20.15 and newer). yauzl fails by
 * itself when the size differs from the declared one.
 */
async function* verified(
  name: string,
  content: Readable,
  expected: number,
  budget: UnpackBudget,
): AsyncIterable<Buffer> {
  let sum = 0
  for await (const chunk of content as AsyncIterable<Buffer>) {
    budget.inflate(chunk.length)
    if (crc32 !== undefined) sum = crc32(chunk, sum)
    yield chunk
  }
  if (sum !== expected && crc32 !== undefined) throw refusedEntry(name, 'its checksum is wrong')
}

function unixMode(entry: Entry): number {
  return entry.externalFileAttributes >>> 16
}

/** The Unix mode identifies links, devices and sockets; archives from other systems have none. */
function refuseKind(name: string, entry: Entry, isFolder: boolean): void {
  const type = unixMode(entry) & FILE_TYPE
  if (type === 0 || type === (isFolder ? FOLDER : REGULAR)) return
  throw refusedEntry(name, type === 0o120000 ? 'it is a link' : 'it is neither a file nor a folder')
}

const crc32 = (zlib as { crc32?: (data: Uint8Array, value: number) => number }).crc32

/**
 * The text of one file in a zip. Reads it in this thread, because the limits keep the work small.
 * @param limits maximum bytes of the file, and maximum entries of the archive
 * @returns undefined when the file is missing or over a limit
 * @throws errors of yauzl and of the file system
 */
export async function readZipEntry(
  file: string,
  name: string,
  { maxBytes, maxFiles }: { readonly maxBytes: number; readonly maxFiles: number },
): Promise<string | undefined> {
  const zip = await yauzl.openPromise(file, { autoClose: false })
  try {
    if (zip.entryCount > maxFiles) return undefined
    for await (const entry of zip.eachEntry()) {
      if (entry.fileName !== name) continue
      if (entry.uncompressedSize > maxBytes || !entry.canDecodeFileData()) return undefined
      const chunks: Buffer[] = []
      for await (const chunk of await zip.openReadStreamPromise(entry)) chunks.push(chunk as Buffer)
      return Buffer.concat(chunks).toString()
    }
    return undefined
  } finally {
    zip.close()
  }
}
