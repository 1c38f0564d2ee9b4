import { existsSync, renameSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { createHash, randomBytes } from 'node:crypto'
import { basename, dirname, join } from 'node:path'
import { ServeError } from '../../common/errors.ts'
import { isObject, parseJson } from '../../common/json.ts'
import { makeFolder } from '../../common/files.ts'
import { removeAtExit } from '../../model-archiver/workspace.ts'
import { hashOf } from '../../model-archiver/hashed-file.ts'
import { claimFolder, sweepFolders } from '../../model-archiver/owner-file.ts'
import { userDownload, userGet, type UserDownload } from '../../model-archiver/user-download.ts'

/** What is known of a file in the cache, in a file beside it. */
export interface CachedFile {
  readonly url: string
  readonly sha256: string
  readonly bytes: number
  readonly etag?: string
}

/** The folder in which models from a URL are kept. */
export function urlFolder(cache: string, url: string): string {
  return join(cache, 'urls', createHash('sha256').update(url).digest('hex').slice(0, 16))
}

/** The folder in which the files of a repository of the hub are kept. */
export function hubFolder(cache: string, repository: string): string {
  return join(cache, 'hub', ...repository.split('/'))
}

/** What is known of a file that was downloaded in full, and still has its size; undefined: none is there. */
export async function cachedFile(path: string): Promise<CachedFile | undefined> {
  const note = parseJson(await readFile(noteOf(path), 'utf8').catch(() => 'null'))
  const bytes = (await stat(path).catch(() => undefined))?.size
  if (!isObject(note) || bytes === undefined || note['bytes'] !== bytes) return undefined
  const { url, sha256, etag } = note
  if (typeof url !== 'string' || typeof sha256 !== 'string') return undefined
  return { url, sha256, bytes, ...(typeof etag === 'string' && { etag }) }
}

/** Paths of all files below a folder that were downloaded in full, relative to it. */
export async function cachedPaths(folder: string): Promise<string[]> {
  const names = await readdir(folder, { recursive: true }).catch(() => [])
  const paths: string[] = []
  for (const name of names.filter((each) => each.endsWith(NOTE)).map((each) => each.slice(0, -NOTE.length)))
    if ((await cachedFile(join(folder, name))) !== undefined) paths.push(name.replaceAll('\\', '/'))
  return paths
}

/**
 * Downloads a file into the cache, unless another command is at it.
 * @throws ServeError DOWNLOAD_FAILED, CONFLICT
 */
export async function fetchToCache(url: string, path: string, options: UserDownload): Promise<CachedFile> {
  await makeFolder(dirname(path), 0o700)
  const unlock = await lock(path)
  try {
    // Another command may have finished it meanwhile.
    const there = await cachedFile(path)
    if (there !== undefined && options.sha256 === there.sha256) return there
    const { sha256, etag } = await userDownload(url, path, options)
    const { size: bytes } = await stat(path)
    const note: CachedFile = { url, sha256, bytes, ...(etag !== undefined && { etag }) }
    await writeNote(path, note)
    return note
  } finally {
    await unlock()
  }
}

/** Whether the server still has the file that is in the cache. @throws ServeError when it cannot be asked */
export async function isCurrent({ url, etag }: CachedFile, options: UserDownload): Promise<boolean> {
  if (etag === undefined) return true
  const headers = { ...options.headers, 'if-none-match': etag }
  const { response } = await userGet(url, { ...options, headers })
  response.destroy()
  return response.statusCode === 304 || response.headers.etag === etag
}

/** @throws ServeError DOWNLOAD_FAILED when a local or cached file has not the SHA-256 that the user gave */
export async function checkHash(path: string, sha256: string): Promise<void> {
  const found = await hashOf(path)
  if (found === sha256) return
  throw new ServeError('UNTRUSTED_ARCHIVE', `The SHA-256 of ${path} must be ${sha256}, found ${found}`)
}

const NOTE = '.download.json'

function noteOf(path: string): string {
  return `${path}${NOTE}`
}

async function writeNote(path: string, note: CachedFile): Promise<void> {
  const beside = `${noteOf(path)}.${randomBytes(8).toString('hex')}`
  await writeFile(beside, JSON.stringify(note), { flag: 'wx', mode: 0o600 })
  renameSync(beside, noteOf(path))
}

/** @returns a function that unlocks */
async function lock(path: string): Promise<() => Promise<void>> {
  const folder = `${path}.lock`
  const name = basename(folder).replace(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)
  if (existsSync(folder)) await sweepFolders(dirname(folder), new RegExp(`^${name}$`))
  try {
    await mkdir(folder, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    throw new ServeError(
      'CONFLICT',
      `Another command is downloading ${path}; wait for it, or remove ${folder} if there is none`,
    )
  }
  claimFolder(folder)
  const removed = removeAtExit(folder)
  return async () => {
    await rm(folder, { recursive: true, force: true })
    removed()
  }
}
