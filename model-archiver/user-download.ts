import { createHash } from 'node:crypto'
import { open, rename, rm } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { dirname } from 'node:path'
import { ServeError } from '../common/errors.ts'
import { freeBytes, LOOK_EVERY_BYTES } from '../common/files.ts'
import { redactUrl } from '../common/texts.ts'
import { httpGet, PrivateAddressError, networkCause } from './http-get.ts'
import { removeAtExit } from './workspace.ts'

/** A request for a URL that the user of a command typed, or that the command derives from it. */
export interface UserRequest {
  readonly headers?: Readonly<Record<string, string>>
  /** Sent only to the origin of the URL. */
  readonly bearer?: string
  /** Milliseconds without an answer or a byte. Default one minute. */
  readonly idleMs?: number
  readonly signal: AbortSignal
}

/** An answer after all redirects. */
export interface UserAnswer {
  /** Its body is still to be read, or destroyed. Status 200; 304 if the request has `if-none-match`. */
  readonly response: IncomingMessage
  /** X-Linked-Etag of the answers, redirects included: on Hugging Face the SHA-256 of a large file. */
  readonly linkedEtag: string | undefined
}

const MAX_REDIRECTS = 5
const IDLE_MS = 60_000

/**
 * Gets a URL and follows its redirects. The user allows the host that they typed, whatever its address is; a
 * redirect to another host must lead to a public address, and never from https to http. Another port of the
 * same host may also have the address at which the first one was reached, and no other private one: its name
 * could lead elsewhere by now.
 * @throws ServeError DOWNLOAD_FAILED with what to do; with a cause if the host could not be reached
 */
export async function userGet(url: string, options: UserRequest): Promise<UserAnswer> {
  const first = new URL(url)
  let at = first
  let linkedEtag: string | undefined
  let firstAddress: string | undefined
  for (let hop = 0; hop <= MAX_REDIRECTS; hop += 1) {
    const response = await getOnce(url, first, at, firstAddress, options)
    const { statusCode = 0, headers, socket } = response
    firstAddress ??= socket.remoteAddress
    linkedEtag = headers['x-linked-etag']?.toString() ?? linkedEtag
    const isUnchanged = statusCode === 304 && options.headers?.['if-none-match'] !== undefined
    if (statusCode === 200 || isUnchanged) return { response, linkedEtag }
    response.destroy()
    if (statusCode < 300 || statusCode > 399 || headers.location === undefined)
      throw refused(url, statusCode, options.bearer !== undefined)
    at = nextOf(url, at, headers.location)
  }
  throw failed(url, `there are more than ${MAX_REDIRECTS} redirects`)
}

async function getOnce(
  url: string,
  first: URL,
  at: URL,
  firstAddress: string | undefined,
  options: UserRequest,
): Promise<IncomingMessage> {
  const { headers, bearer, idleMs = IDLE_MS, signal } = options
  try {
    return await httpGet(at, {
      headers: {
        ...headers,
        ...(bearer !== undefined && at.origin === first.origin && { authorization: `Bearer ${bearer}` }),
      },
      allowPrivate: at.host === first.host,
      alsoAllowed: at.hostname === first.hostname ? firstAddress : undefined,
      idleMs,
      signal,
    })
  } catch (error) {
    signal.throwIfAborted()
    if (!(error instanceof PrivateAddressError)) throw failed(url, networkCause(error), error)
    const why = `it redirects to ${at.host}, and ${error.address} is a loopback or private address`
    throw failed(url, `${why}; give that URL itself if you trust it`)
  }
}

function nextOf(url: string, at: URL, location: string): URL {
  const next = URL.canParse(location, at.href) ? new URL(location, at) : undefined
  if (next === undefined || !/^https?:$/.test(next.protocol))
    throw failed(url, `it redirects to ${redactUrl(location)}, which is not supported`)
  if (at.protocol === 'https:' && next.protocol === 'http:')
    throw failed(url, `it redirects from https to http (${next.host}), which is not supported`)
  return next
}

function refused(url: string, status: number, hadToken: boolean): ServeError {
  const advice = new Map([
    [401, hadToken ? '; the token in HF_TOKEN is not valid' : '; if it is on Hugging Face, set HF_TOKEN'],
    [403, '; on Hugging Face, accept the conditions of the model on its page, and set HF_TOKEN'],
    [404, '; check the name'],
  ]).get(status)
  return failed(url, `the answer was ${status}${advice ?? ''}`)
}

/** The error of a download for the user of a command. */
export function failed(url: string, why: string, cause?: unknown): ServeError {
  return new ServeError('DOWNLOAD_FAILED', `${redactUrl(url)} could not be downloaded: ${why}`, { cause })
}

/** A file that the user of a command asked for. */
export interface UserDownload extends UserRequest {
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

/**
 * Downloads to `target`, atomically; nothing stays of a file that does not arrive in full. Only one process
 * may download to a target at a time.
 * @throws ServeError DOWNLOAD_FAILED with the reason
 */
export async function userDownload(url: string, target: string, options: UserDownload): Promise<Downloaded> {
  const part = `${target}.part`
  const { response, linkedEtag } = await userGet(url, options)
  const removed = removeAtExit(part)
  try {
    const wanted = options.sha256 ?? sha256In(linkedEtag)
    const sha256 = await save(url, response, part, options)
    if (wanted !== undefined && sha256 !== wanted)
      throw failed(url, `its SHA-256 must be ${wanted}, found ${sha256}; the file was removed`)
    await rename(part, target)
    return { sha256, checked: wanted !== undefined, etag: response.headers.etag }
  } finally {
    response.destroy()
    await rm(part, { force: true })
    removed()
  }
}

/** The ETag of a small file is no SHA-256. */
function sha256In(etag: string | undefined): string | undefined {
  const text = etag?.replace(/^W\//, '').replaceAll('"', '')
  return text !== undefined && /^[0-9a-f]{64}$/.test(text) ? text : undefined
}

/** @returns the SHA-256 of the file */
async function save(
  url: string,
  body: IncomingMessage,
  part: string,
  { maxBytes = MAX_BYTES, minFreeBytes = MIN_FREE_BYTES, onProgress }: UserDownload,
): Promise<string> {
  const length = body.headers['content-length']
  const size = length === undefined ? undefined : Number(length)
  const folder = dirname(part)
  if (size !== undefined && size > maxBytes) throw failed(url, `it has ${size} bytes, more than ${maxBytes}`)
  const free = await freeBytes(folder)
  if (size !== undefined && size > free)
    throw failed(url, `it needs ${size} bytes, and ${folder} has ${free}`)
  const hash = createHash('sha256')
  const file = await open(part, 'w', 0o600)
  let bytes = 0
  let looked = 0
  onProgress?.(bytes, size)
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      if (bytes + chunk.length > maxBytes) throw failed(url, `it has more than ${maxBytes} bytes`)
      // A body without a size may have no end.
      if (size === undefined && bytes - looked >= LOOK_EVERY_BYTES) {
        looked = bytes
        if ((await freeBytes(folder)) < minFreeBytes)
          throw failed(
            url,
            `its server does not say its size, and ${folder} must keep ${minFreeBytes} bytes free`,
          )
      }
      await file.writeFile(chunk)
      hash.update(chunk)
      bytes += chunk.length
      onProgress?.(bytes, size)
    }
    await file.datasync()
  } catch (error) {
    if (error instanceof ServeError) throw error
    const { message } = error as Error
    throw failed(url, message === 'aborted' ? 'the connection ended early' : message, error)
  } finally {
    await file.close()
  }
  return hash.digest('hex')
}
