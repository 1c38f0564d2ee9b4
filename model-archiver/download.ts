import { randomBytes } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { access, link, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { ServeError } from '../protocol/errors.ts'
import { entryNameProblem } from './entry-names.ts'

export interface DownloadOptions {
  /** Asked for the URL and for every redirect on the way. */
  readonly isAllowed: (url: string) => boolean
  /** Default 20 GiB. */
  readonly maxBytes?: number
}

const MAX_REDIRECTS = 5
const MAX_BYTES = 20 * 1024 ** 3

/**
 * Streams an archive into the store under the last part of its URL. The file appears there whole or not at all, and never
 * replaces another.
 * @returns its absolute path
 * @throws ServeError MODEL_NOT_FOUND for a URL that is not allowed, DOWNLOAD_FAILED, INTERNAL when the file exists or cannot be saved
 */
export async function downloadArchive(url: string, store: string, options: DownloadOptions): Promise<string> {
  const target = join(store, fileNameOf(url))
  if (!options.isAllowed(new URL(url).href)) throw notAllowed(url)
  await refuseExisting(target)
  const beside = join(store, `.download-${randomBytes(8).toString('hex')}.part`)
  try {
    const body = await request(url, options.isAllowed)
    await save(url, limited(url, body, options.maxBytes ?? MAX_BYTES), beside)
    await publish(url, beside, target)
    return target
  } finally {
    await rm(beside, { force: true })
  }
}

function fileNameOf(url: string): string {
  const path = URL.canParse(url) ? new URL(url).pathname : ''
  let name: string
  try {
    name = decodeURIComponent(path.slice(path.lastIndexOf('/') + 1))
  } catch (error) {
    throw failed(url, 'the file name is malformed', error)
  }
  if (name.startsWith('.') || name.includes('/') || entryNameProblem(name) !== undefined)
    throw failed(url, 'the URL does not end in a file name')
  return name
}

async function refuseExisting(target: string): Promise<void> {
  const there = await access(target).then(
    () => true,
    () => false,
  )
  if (there) throw alreadyExists(target)
}

async function request(url: string, isAllowed: (url: string) => boolean): Promise<AsyncIterable<Uint8Array>> {
  let at = new URL(url).href
  for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
    const response = await get(url, at)
    if (response.ok && response.body !== null) return response.body
    await response.body?.cancel()
    const location = response.headers.get('location')
    if (response.status < 300 || response.status > 399 || location === null || !URL.canParse(location, at))
      throw failed(url, `the answer was ${response.status}`)
    at = new URL(location, at).href
    if (!/^https?:/.test(at) || !isAllowed(at)) throw notAllowed(at)
  }
  throw failed(url, `more than ${MAX_REDIRECTS} redirects`)
}

async function get(url: string, at: string): Promise<Response> {
  try {
    // A decoded body would not be the file, and its length could not be trusted.
    return await fetch(at, { redirect: 'manual', headers: { 'accept-encoding': 'identity' } })
  } catch (error) {
    throw failed(url, causeText(error), error)
  }
}

async function* limited(
  url: string,
  body: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncIterable<Uint8Array> {
  let bytes = 0
  try {
    for await (const chunk of body) {
      bytes += chunk.length
      if (bytes > maxBytes) throw failed(url, `it is larger than ${maxBytes} bytes`)
      yield chunk
    }
  } catch (error) {
    throw error instanceof ServeError ? error : failed(url, causeText(error), error)
  }
}

async function save(url: string, content: AsyncIterable<Uint8Array>, path: string): Promise<void> {
  try {
    await pipeline(content, createWriteStream(path, { flags: 'wx' }))
  } catch (error) {
    throw error instanceof ServeError ? error : notSaved(url, error)
  }
}

/** A hard link, unlike a rename, fails when somebody else was faster. */
async function publish(url: string, from: string, target: string): Promise<void> {
  try {
    await link(from, target)
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'EEXIST' ? alreadyExists(target) : notSaved(url, error)
  }
}

/** The refusal of a URL that is not allowed (spec 1.3). */
export function notAllowed(url: string): ServeError {
  return new ServeError('MODEL_NOT_FOUND', `Given URL ${url} does not match any allowed URL(s)`)
}

function failed(url: string, detail: string, cause?: unknown): ServeError {
  return new ServeError('DOWNLOAD_FAILED', `Failed to download archive from: ${url}`, { detail, cause })
}

function notSaved(url: string, cause: unknown): ServeError {
  const detail = (cause as Error).message
  return new ServeError('INTERNAL', `Failed to save model: ${url}`, { detail, cause })
}

function alreadyExists(target: string): ServeError {
  return new ServeError('INTERNAL', `Model file already exists ${basename(target)}`)
}

function causeText(error: unknown): string {
  const { message, cause } = error as Error
  return cause instanceof Error ? `${message}: ${cause.message}` : message
}
