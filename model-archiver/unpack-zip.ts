import { open } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import * as zlib from 'node:zlib'
import yauzl, { type Entry, type ZipFile } from 'yauzl'
import { EntryGuard, refusedEntry } from './entry-guard.ts'
import { shownName } from './entry-names.ts'
import { EntryWriter } from './entry-writer.ts'
import type { UnpackBudget } from './unpack-budget.ts'

const FILE_TYPE = 0o170000
const REGULAR = 0o100000
const FOLDER = 0o040000

/**
 * Unpacks a zip into an existing, empty folder. All entries are judged by what the archive says of them before the first is written; what comes
 * out of them is held to it.
 * @throws ServeError INVALID_ARCHIVE for a refused entry; errors of yauzl and of the file system as they are
 */
export async function unpackZip(file: string, folder: string, budget: UnpackBudget): Promise<void> {
  const handle = await open(file, 'r')
  try {
    await judge(await read(handle.fd), budget)
    const zip = await read(handle.fd)
    const writer = new EntryWriter(folder, budget)
    for await (const entry of zip.eachEntry()) await write(zip, entry, writer, budget)
  } finally {
    await handle.close()
  }
}

/** From the beginning of its directory. Names are decoded below so that one set of rules, with one wording, judges every archive format. */
function read(fd: number): Promise<ZipFile> {
  return yauzl.fromFdPromise(fd, { decodeStrings: false, autoClose: false })
}

async function judge(zip: ZipFile, budget: UnpackBudget): Promise<void> {
  budget.count(zip.entryCount)
  const guard = new EntryGuard(budget)
  const places: Place[] = []
  for await (const entry of zip.eachEntry()) {
    const name = nameOf(entry)
    const isFolder = name.endsWith('/')
    refuseKind(name, entry, isFolder)
    guard.admit(name, isFolder ? 'folder' : 'file', entry.uncompressedSize)
    if (!isFolder && !entry.canDecodeFileData())
      throw refusedEntry(name, 'it is encrypted or compressed in an unknown way')
    const { fileDataStart } = await zip.readLocalFileHeaderPromise(entry, { minimal: true })
    places.push({
      name,
      start: entry.relativeOffsetOfLocalHeader,
      end: fileDataStart + entry.compressedSize,
    })
  }
  refuseOverlaps(places)
}

/** Where an entry stands in the file, its header included. */
interface Place {
  readonly name: string
  readonly start: number
  readonly end: number
}

/** Bytes that are many entries' content make a bomb that no ratio of one entry shows (David Fifield, "A better zip bomb", 2019). */
function refuseOverlaps(places: Place[]): void {
  places.sort((a, b) => a.start - b.start || a.end - b.end)
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
  // It flows already: an error may come before somebody reads it, who then gets it all the same.
  content.on('error', () => undefined)
  const checked = verified(name, content, entry.crc32, budget)
  await writer.file(name, unixMode(entry), entry.uncompressedSize, checked)
}

function nameOf(entry: Entry): string {
  const { generalPurposeBitFlag, fileNameRaw, extraFields } = entry
  return yauzl.getFileNameLowLevel(generalPurposeBitFlag, fileNameRaw, extraFields, true)
}

/**
 * The content, compared with its checksum where Node can compute one (20.15 and newer). yauzl itself ends it with an error
 * when it has more or fewer bytes than declared.
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

/** Links, devices and sockets are told apart by the Unix mode; archives made elsewhere have none. */
function refuseKind(name: string, entry: Entry, isFolder: boolean): void {
  const type = unixMode(entry) & FILE_TYPE
  if (type === 0 || type === (isFolder ? FOLDER : REGULAR)) return
  throw refusedEntry(name, type === 0o120000 ? 'it is a link' : 'it is neither a file nor a folder')
}

const crc32 = (zlib as { crc32?: (data: Uint8Array, value: number) => number }).crc32
