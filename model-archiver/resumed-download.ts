import { createHash, type Hash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { dirname } from 'node:path'
import { ServeError } from '../common/errors.ts'
import { freeBytes, LOOK_EVERY_BYTES } from '../common/files.ts'
import { isObject, parseJson } from '../common/json.ts'
import { redactUrl } from '../common/texts.ts'
import { failed, userGet, type UserRequest } from './user-get.ts'

/** A download that the user of a command asked for. */
export interface ResumedDownload extends UserRequest {
  /** SHA-256 that the file must have, in lowercase hex; undefined: that of the server's answer, if any. */
  readonly sha256?: string
  /** Largest size in bytes. Default 1 TiB; free disk space limits it in any case. */
  readonly maxBytes?: number
  /** Bytes that a file of which the server does not say the size leaves free on the disk. Default 256 MiB. */
  readonly minFreeBytes?: number
  /** Called with the bytes that are there, and the size of the file if the server says it. */
  readonly onProgress?: (bytes: number, size: number | undefined) => void
}

/** What is known of a file that was downloaded. */
export interface Downloaded {
  /** Its SHA-256 in lowercase hex. */
  readonly sha256: string
  /** Whether the SHA-256 was known beforehand, so that the content was checked. */
  readonly checked: boolean
  /** ETag of the answer; undefined: it had none. */
  readonly etag: string | undefined
}

const MAX_BYTES = 1024 ** 4
const MIN_FREE_BYTES = 256 * 1024 ** 2
/** Connections in a row that broke and brought nothing. */
const MAX_FRUITLESS = 3
const SHA256 = /^[0-9a-f]{64}$/

/** Bytes of a file that has not arrived in full. */
export function partOf(target: string): string {
  return `${target}.part`
}

/** The state of a part: the entity that its bytes are of. */
function noteOf(target: string): string {
  return `${target}.part.json`
}

/**
 * Downloads to `target`, atomically. What has arrived stays in a file beside it when the download ends early,
 * and the next one asks only for the rest, of the same entity (RFC 9110, "Range" and "If-Range"). So does
 * this one itself when a connection breaks, until three in a row have brought nothing. If a rest does not fit
 * what was there, the file is downloaded from its beginning, once. Only one process may download to a target
 * at a time.
 * @throws ServeError DOWNLOAD_FAILED with the reason
 */
export async function downloadResumed(
  url: string,
  target: string,
  options: ResumedDownload,
): Promise<Downloaded> {
  let fruitless = 0
  let begunAgain = false
  for (;;) {
    const before = await sizeOf(partOf(target))
    try {
      return await attemptTo(url, target, options)
    } catch (error) {
      if (error instanceof Unfit) {
        // What has arrived goes in any case: the next download must not fail for the same reason.
        await forget(target)
        if (begunAgain || !error.isRest || options.signal.aborted) throw error
        begunAgain = true
        continue
      }
      fruitless = (await sizeOf(partOf(target))) > before ? 0 : fruitless + 1
      if (!(error instanceof BrokenOff) || fruitless === MAX_FRUITLESS || options.signal.aborted) throw error
    }
  }
}

/** The connection broke in the body. */
class BrokenOff extends ServeError {}

/** What has arrived is not the file, or not the rest of it. */
class Unfit extends ServeError {
  /** Whether the file may be right when it is read from its beginning. */
  readonly isRest: boolean

  constructor(url: string, why: string, isRest: boolean) {
    super('DOWNLOAD_FAILED', `${redactUrl(url)} could not be downloaded: ${why}`)
    this.isRest = isRest
  }
}

async function attemptTo(url: string, target: string, options: ResumedDownload): Promise<Downloaded> {
  const part = partOf(target)
  const have = await resumable(target, options)
  // Before the request: nobody reads the answer meanwhile.
  const hash = createHash('sha256')
  if (have.bytes > 0) await hashFile(part, have.bytes, hash)
  const range = have.bytes === 0 ? {} : { range: `bytes=${have.bytes}-`, ...ifRange(have.etag) }
  const { response, linkedEtag } = await userGet(url, {
    ...options,
    headers: { ...options.headers, ...range },
  })
  try {
    const start = startOf(url, response, have)
    const size = sizeIn(response.headers, start)
    await checkRoom(url, target, size, start, options.maxBytes ?? MAX_BYTES)
    const wanted = options.sha256 ?? sha256In(linkedEtag)
    const etag = strongEtag(response.headers) ?? (start > 0 ? have.etag : undefined)
    await writeFile(noteOf(target), JSON.stringify({ url, etag, sha256: wanted }), { mode: 0o600 })
    const sha256 = await append(
      url,
      response,
      part,
      { start, size, hash: start > 0 ? hash : createHash('sha256') },
      options,
    )
    if (wanted !== undefined && sha256 !== wanted) {
      const why = `its SHA-256 must be ${wanted}, found ${sha256}; the file was removed`
      throw new Unfit(url, why, start > 0)
    }
    await rename(part, target)
    await rm(noteOf(target), { force: true })
    return { sha256, checked: wanted !== undefined, etag: response.headers.etag }
  } finally {
    response.destroy()
  }
}

/** What is there of a file. */
interface Part {
  readonly bytes: number
  /** The entity that the bytes are of. */
  readonly etag: string | undefined
}

/** What an earlier download has left, if the rest can be asked for. */
async function resumable(target: string, { sha256 }: ResumedDownload): Promise<Part> {
  const bytes = await sizeOf(partOf(target))
  const note = parseJson(await readFile(noteOf(target), 'utf8').catch(() => 'null'))
  const known = isObject(note) ? note : {}
  const etag = typeof known['etag'] === 'string' ? known['etag'] : undefined
  const sameHash = sha256 !== undefined && known['sha256'] === sha256
  // Without an entity tag only the hash can tell that both parts are of one file.
  if (bytes > 0 && (sameHash || (etag !== undefined && sha256 === undefined))) return { bytes, etag }
  await forget(target)
  return { bytes: 0, etag: undefined }
}

async function forget(target: string): Promise<void> {
  await rm(partOf(target), { force: true })
  await rm(noteOf(target), { force: true })
}

function ifRange(etag: string | undefined): Record<string, string> {
  return etag === undefined ? {} : { 'if-range': etag }
}

/** Only a strong one says that the bytes are the same. */
function strongEtag({ etag }: IncomingHttpHeaders): string | undefined {
  return etag?.startsWith('"') === true && etag.length <= 1024 ? etag : undefined
}

/** The ETag of a small file is no SHA-256. */
function sha256In(etag: string | undefined): string | undefined {
  const text = etag?.replace(/^W\//, '').replaceAll('"', '')
  return text !== undefined && SHA256.test(text) ? text : undefined
}

const RANGE = /^bytes (\d{1,15})-\d{1,15}\/(\d{1,15}|\*)$/

/** Where the bytes of an answer begin. @throws ServeError DOWNLOAD_FAILED for other bytes than wanted */
function startOf(url: string, { statusCode, headers }: IncomingMessage, have: Part): number {
  if (statusCode === 200) return 0
  if (have.bytes > 0 && statusCode === 416) throw new Unfit(url, 'the answer was 416', true)
  if (statusCode !== 206) throw failed(url, `the answer was ${statusCode}`)
  const start = RANGE.exec(headers['content-range'] ?? '')?.[1]
  const etag = strongEtag(headers)
  const isOther = etag !== undefined && have.etag !== undefined && etag !== have.etag
  if (have.bytes > 0 && Number(start) === have.bytes && !isOther) return have.bytes
  throw new Unfit(url, 'the answer has other bytes than wanted', have.bytes > 0)
}

/** The size of the whole file. A server may answer with less than the whole rest. */
function sizeIn(headers: IncomingHttpHeaders, start: number): number | undefined {
  const whole = start > 0 ? RANGE.exec(headers['content-range'] ?? '')?.[2] : undefined
  if (whole !== undefined && whole !== '*') return Number(whole)
  const length = headers['content-length']
  return length !== undefined && /^\d+$/.test(length) ? start + Number(length) : undefined
}

async function checkRoom(
  url: string,
  target: string,
  size: number | undefined,
  start: number,
  maxBytes: number,
): Promise<void> {
  if (size === undefined) return
  if (size > maxBytes) throw failed(url, `it has ${size} bytes, more than ${maxBytes}`)
  const free = await freeBytes(dirname(target))
  if (size - start > free)
    throw failed(url, `it needs ${size - start} bytes, and ${dirname(target)} has ${free}`)
}

/** A body without a size may have no end. What has arrived of it goes, so that the disk is free again. */
async function checkReserve(url: string, part: string, minFree: number): Promise<void> {
  if ((await freeBytes(dirname(part))) >= minFree) return
  const why = `its server does not say its size, and ${dirname(part)} must keep ${minFree} bytes free`
  throw new Unfit(url, why, false)
}

/** @returns the SHA-256 of the whole file */
async function append(
  url: string,
  body: IncomingMessage,
  part: string,
  { start, size, hash }: { start: number; size: number | undefined; hash: Hash },
  { maxBytes = MAX_BYTES, minFreeBytes = MIN_FREE_BYTES, onProgress }: ResumedDownload,
): Promise<string> {
  const file = await open(part, start > 0 ? 'r+' : 'w', 0o600)
  let bytes = start
  let looked = start
  onProgress?.(bytes, size)
  try {
    for await (const chunk of chunksOf(url, body)) {
      if (bytes + chunk.length > maxBytes) throw failed(url, `it has more than ${maxBytes} bytes`)
      if (size !== undefined && bytes + chunk.length > size)
        throw new Unfit(url, `it has more than the ${size} bytes that its server announced`, start > 0)
      if (size === undefined && bytes - looked >= LOOK_EVERY_BYTES) {
        looked = bytes
        await checkReserve(url, part, minFreeBytes)
      }
      await file.write(chunk, 0, chunk.length, bytes)
      hash.update(chunk)
      bytes += chunk.length
      onProgress?.(bytes, size)
    }
    if (size !== undefined && bytes < size) throw brokenOff(url, new Error('the connection ended early'))
    await file.datasync()
  } catch (error) {
    throw error instanceof ServeError ? error : failed(url, (error as Error).message)
  } finally {
    await file.close()
  }
  return hash.digest('hex')
}

async function* chunksOf(url: string, body: IncomingMessage): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of body) yield chunk as Buffer
  } catch (error) {
    const { message } = error as Error
    throw brokenOff(url, message === 'aborted' ? new Error('the connection ended early') : (error as Error))
  }
}

async function hashFile(path: string, bytes: number, hash: Hash): Promise<void> {
  for await (const chunk of createReadStream(path, { end: bytes - 1 })) hash.update(chunk as Buffer)
}

async function sizeOf(path: string): Promise<number> {
  return (await stat(path).catch(() => undefined))?.size ?? 0
}

function brokenOff(url: string, cause: Error): ServeError {
  return new BrokenOff('DOWNLOAD_FAILED', `${redactUrl(url)} was not downloaded in full: ${cause.message}`, {
    cause,
  })
}
