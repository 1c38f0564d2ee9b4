import type { Readable } from 'node:stream'
import * as zlib from 'node:zlib'
import yauzl, { type Entry, type ZipFile } from 'yauzl'
import { EntryGuard, refusedEntry, type UnpackLimits } from './entry-guard.ts'
import { EntryWriter } from './entry-writer.ts'

const FILE_TYPE = 0o170000
const REGULAR = 0o100000
const FOLDER = 0o040000

/**
 * Unpacks a zip into an existing, empty folder.
 * @throws ServeError INVALID_ARCHIVE for a refused entry; errors of yauzl and of the file system as they are
 */
export async function unpackZip(file: string, folder: string, limits: UnpackLimits): Promise<void> {
  // Names are decoded below so that one set of rules, with one wording, judges every archive format.
  const zip = await yauzl.openPromise(file, { decodeStrings: false, autoClose: false })
  try {
    const guard = new EntryGuard(limits)
    const writer = new EntryWriter(folder)
    for await (const entry of zip.eachEntry()) await unpackEntry(zip, entry, guard, writer)
  } finally {
    zip.close()
  }
}

async function unpackEntry(
  zip: ZipFile,
  entry: Entry,
  guard: EntryGuard,
  writer: EntryWriter,
): Promise<void> {
  const name = yauzl.getFileNameLowLevel(
    entry.generalPurposeBitFlag,
    entry.fileNameRaw,
    entry.extraFields,
    true,
  )
  const isFolder = name.endsWith('/')
  refuseKind(name, entry, isFolder)
  guard.admit(name, isFolder ? 'folder' : 'file', entry.uncompressedSize)
  if (isFolder) return writer.folder(name)
  if (!entry.canDecodeFileData()) throw refusedEntry(name, 'it is encrypted or compressed in an unknown way')
  const content = await zip.openReadStreamPromise(entry)
  // It flows already: an error may come before somebody reads it, who then gets it all the same.
  content.on('error', () => undefined)
  await writer.file(name, unixMode(entry), verified(name, content, entry.crc32))
}

/**
 * The content, compared with its checksum where Node can compute one (20.15 and newer). yauzl itself ends it with an error
 * when it has more or fewer bytes than declared.
 */
async function* verified(name: string, content: Readable, expected: number): AsyncIterable<Buffer> {
  let sum = 0
  for await (const chunk of content as AsyncIterable<Buffer>) {
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
