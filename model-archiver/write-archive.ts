import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, createWriteStream } from 'node:fs'
import { copyFile, lstat, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { Header, Pack, ReadEntry } from 'tar'
import { ZipFile } from 'yazl'
import { makeFolder } from '../common/files.ts'
import type { ArchiveFile } from './contents.ts'

/** `default`: zip; `zip-store`: zip without compression; `tgz`: compressed tar; `no-archive`: a folder. */
export const ARCHIVE_FORMATS = ['default', 'tgz', 'no-archive', 'zip-store'] as const
export type ArchiveFormat = (typeof ARCHIVE_FORMATS)[number]

/** File name extension by format. */
export const ARCHIVE_ENDINGS: Record<ArchiveFormat, string> = {
  default: '.mar',
  'zip-store': '.mar',
  tgz: '.tar.gz',
  'no-archive': '',
}

/**
 * Fixed timestamp, so that the same input gives the same bytes. Local time, because zip has no time zones.
 */
const FIXED_TIME = new Date(1980, 0, 1)

/**
 * Writes an archive beside `target` and renames it, so that a store never shows a partial one. Replaces an
 * existing one.
 */
export async function writeArchive(
  files: readonly ArchiveFile[],
  target: string,
  format: ArchiveFormat,
): Promise<void> {
  const beside = join(dirname(target), `.${basename(target)}.${randomBytes(4).toString('hex')}.part`)
  try {
    if (format === 'no-archive') await writeFolder(files, beside)
    else if (format === 'tgz') await writeTar(files, beside, basename(target, ARCHIVE_ENDINGS.tgz))
    else await writeZip(files, beside, format === 'default')
    await replace(beside, target)
  } finally {
    await rm(beside, { recursive: true, force: true })
  }
}

/** A rename cannot replace a folder, so the old one is moved away first. */
async function replace(from: string, target: string): Promise<void> {
  const old = await lstat(target).catch(() => undefined)
  if (!old?.isDirectory()) return rename(from, target)
  const aside = `${from}.old`
  await rename(target, aside)
  await rename(from, target)
  await rm(aside, { recursive: true, force: true })
}

async function writeZip(files: readonly ArchiveFile[], target: string, compress: boolean): Promise<void> {
  const zip = new ZipFile()
  const output = zip.outputStream
  zip.on('error', (error: Error) => {
    if (output instanceof Readable) output.destroy(error)
  })
  for (const file of files) {
    const options = { mtime: FIXED_TIME, forceDosTimestamp: true, mode: modeOf(file), compress }
    if (typeof file.source === 'string') zip.addFile(file.source, file.name, options)
    else zip.addBuffer(file.source, file.name, options)
  }
  zip.end()
  await pipeline(output, createWriteStream(target, { flags: 'wx' }))
}

/** TorchServe drops the first segment of each name, so all files are below one folder. */
async function writeTar(files: readonly ArchiveFile[], target: string, folder: string): Promise<void> {
  const pack = new Pack({ gzip: true, portable: true })
  const written = writeFile(target, pack as AsyncIterable<Buffer>, { flag: 'wx' })
  const added = addEntries(pack, files, folder).catch((error: unknown) => {
    pack.destroy(error)
    throw error
  })
  await Promise.all([written, added])
}

async function addEntries(pack: Pack, files: readonly ArchiveFile[], folder: string): Promise<void> {
  for (const file of files) {
    const size = typeof file.source === 'string' ? (await stat(file.source)).size : file.source.length
    const path = `${folder}/${file.name}`
    const entry = new ReadEntry(
      new Header({ path, size, mode: modeOf(file), mtime: FIXED_TIME, type: 'File' }),
    )
    pack.add(entry)
    const content = typeof file.source === 'string' ? createReadStream(file.source) : [file.source]
    for await (const chunk of content) if (!entry.write(chunk as Buffer)) await once(entry, 'drain')
    entry.end()
  }
  pack.end()
}

async function writeFolder(files: readonly ArchiveFile[], target: string): Promise<void> {
  for (const file of files) {
    const path = join(target, file.name)
    await makeFolder(dirname(path))
    if (typeof file.source === 'string') await copyFile(file.source, path)
    else await writeFile(path, file.source)
  }
}

function modeOf(file: ArchiveFile): number {
  return file.executable ? 0o100755 : 0o100644
}
