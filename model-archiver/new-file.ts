import { randomBytes } from 'node:crypto'
import { link, open, readdir, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { pathExists, nameOnDisk } from '../common/files.ts'
import { removeAtExit } from './workspace.ts'

const PART = /^\.download-[0-9a-f]{16}\.part$/
/** A file that is being written grows more often than this, in milliseconds. */
const STALE_MS = 10 * 60_000

/** Files that are being written; a second of the same name fails at once. */
const underWay = new Set<string>()

/** The name belongs to another file, or to one that is being written. */
export class NameTaken extends Error {
  override readonly name = 'NameTaken'
}

export interface NewFile {
  /** Called once the name is known to be free. What it or the iteration throws ends the file. */
  readonly content: () => AsyncIterable<Uint8Array> | Promise<AsyncIterable<Uint8Array>>
  readonly signal?: AbortSignal
}

/**
 * Writes a file of a model store: under a hidden name beside it, and whole on the disk before it gets its own
 * name. If that fails, nothing of it stays; what a killed process leaves, `sweepParts` removes.
 * @throws NameTaken; what `content` throws; errors of the file system
 */
export async function writeNewFile(target: string, { content, signal }: NewFile): Promise<void> {
  if (underWay.has(target)) throw new NameTaken()
  underWay.add(target)
  const beside = join(dirname(target), `.download-${randomBytes(8).toString('hex')}.part`)
  const removed = removeAtExit(beside)
  try {
    if (await pathExists(target)) throw new NameTaken()
    await save(await content(), beside, signal)
    await publish(beside, target)
  } finally {
    underWay.delete(target)
    // What cannot be removed now goes when this process exits.
    await rm(beside, { force: true }).then(removed, () => undefined)
  }
}

/** Removes what killed processes have left of files in a store. Never rejects. */
export async function sweepParts(store: string): Promise<void> {
  for (const name of await readdir(store).catch(() => [])) {
    if (!PART.test(name)) continue
    const path = join(store, name)
    const stats = await stat(path).catch(() => undefined)
    if (stats !== undefined && Date.now() - stats.mtimeMs > STALE_MS) await rm(path, { force: true })
  }
}

async function save(
  content: AsyncIterable<Uint8Array>,
  path: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const file = await open(path, 'wx')
  try {
    const write = async (chunks: AsyncIterable<Uint8Array>): Promise<void> => {
      for await (const chunk of chunks) await file.writeFile(chunk)
    }
    await pipeline(content, write, { signal })
    await file.datasync()
  } finally {
    await file.close()
  }
}

/** A hard link, unlike a rename, fails if the target exists by now. */
async function publish(from: string, target: string): Promise<void> {
  try {
    await nameOnDisk(target, () => link(from, target))
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'EEXIST' ? new NameTaken() : error
  }
}
