import type { IncomingMessage } from 'node:http'
import { basename, join } from 'node:path'
import { ServeError } from '../common/errors.ts'
import { isName, NAME_RULE } from '../common/names.ts'
import { redactUrl } from '../common/texts.ts'
import { startTimer } from '../common/timer.ts'
import { networkCause, type GetOptions, httpGet, PrivateAddressError } from './http-get.ts'
import { NameTaken, writeNewFile } from './new-file.ts'
import { isS3Host, maySignFor, credentialsFrom, signS3Get } from './s3-signature.ts'
import { calledOff } from './turns.ts'

export interface DownloadLimits {
  /** Maximum size in bytes. Default 20 GiB. */
  readonly maxBytes?: number
  /** Milliseconds for the whole download, redirects included. Default one hour. */
  readonly timeoutMs?: number
  /** Milliseconds without an answer or a byte. Default one minute. */
  readonly idleMs?: number
  /** Whether loopback and private addresses are allowed. Default false. */
  readonly allowPrivate?: boolean
  /**
   * Whether to sign the request for S3 with the environment's keys (TorchServe's s3_sse_kms). Default false.
   */
  readonly s3SseKms?: boolean
  /** Origins besides those of S3 that get a signature (key s3_signing_hosts). Default: none. */
  readonly s3SigningHosts?: readonly string[]
  /** Cancels the download. */
  readonly signal?: AbortSignal
  /** Told of each piece: how many bytes have arrived, of how many if the server said so. */
  readonly onProgress?: (received: number, total: number | undefined) => void
}

export interface DownloadOptions extends DownloadLimits {
  /** Called for the URL and for every redirect. */
  readonly isAllowed: (url: string) => boolean
}

const MAX_REDIRECTS = 5
const MAX_BYTES = 20 * 1024 ** 3
const IDLE_MS = 60_000
const TIMEOUT_MS = 3_600_000

/**
 * Streams an archive into the store under the last segment of its URL. Creates the file atomically and never
 * replaces another.
 * @returns its absolute path
 * @throws ServeError MODEL_NOT_FOUND for a URL that is not allowed, DOWNLOAD_FAILED, INTERNAL when the file
 *   exists or cannot be saved
 */
export async function downloadArchive(url: string, store: string, options: DownloadOptions): Promise<string> {
  const target = join(store, archiveNameOf(url))
  if (!options.isAllowed(new URL(url).href)) throw notAllowed(url)
  const { timeoutMs = TIMEOUT_MS, signal: stopping } = options
  const controller = new AbortController()
  const { signal } = controller
  const timer = startTimer(() => {
    controller.abort(failed(url, `it took longer than ${timeoutMs / 1000} s`))
  }, timeoutMs)
  const stop = (): void => controller.abort(calledOff())
  stopping?.addEventListener('abort', stop)
  if (stopping?.aborted === true) stop()
  const content = async (): Promise<AsyncIterable<Uint8Array>> =>
    limited(url, await request(url, options, signal), options)
  try {
    await writeNewFile(target, { content, signal })
    return target
  } catch (error) {
    if (signal.aborted) throw signal.reason as ServeError
    if (error instanceof ServeError) throw error
    throw error instanceof NameTaken ? alreadyExists(target) : notSaved(url, error)
  } finally {
    clearTimeout(timer)
    stopping?.removeEventListener('abort', stop)
  }
}

/**
 * The name that an archive gets in the store. Only an archive's ending passes: any other file could be one
 * that the server reads when it starts (settings.json, model-settings.json).
 */
function archiveNameOf(url: string): string {
  const path = URL.canParse(url) ? new URL(url).pathname : ''
  const encoded = path.slice(path.lastIndexOf('/') + 1)
  const name = decodedName(encoded)
  if (name !== undefined && isName(name) && DOWNLOADED.test(name)) return name
  throw new ServeError(
    'DOWNLOAD_FAILED',
    `The URL ${redactUrl(url)} must end in the name of an archive (.mar, .model, .tar.gz, .tgz or .war), and that name must ${NAME_RULE}.`,
  )
}

const DOWNLOADED = /.\.(mar|model|tar\.gz|tgz|war)$/i

function decodedName(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

async function request(url: string, options: DownloadOptions, signal: AbortSignal): Promise<IncomingMessage> {
  const { isAllowed, allowPrivate = false, s3SseKms = false, s3SigningHosts = [], idleMs = IDLE_MS } = options
  const first = new URL(url)
  if (s3SseKms && !maySignFor(first, s3SigningHosts)) throw notSigned(first)
  let at = first
  for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
    const isSigned = s3SseKms && isSameService(first, at) && maySignFor(at, s3SigningHosts)
    const headers = isSigned ? signed(url, at) : {}
    const response = await get(url, at, { headers, allowPrivate, idleMs, signal })
    const { statusCode = 0, headers: answer } = response
    if (statusCode >= 200 && statusCode <= 299) return checkLength(url, response, options.maxBytes)
    response.destroy()
    const { location } = answer
    if (statusCode < 300 || statusCode > 399 || location === undefined || !URL.canParse(location, at.href))
      throw failed(url, `the answer was ${statusCode}`)
    at = new URL(location, at)
    if (!/^https?:$/.test(at.protocol) || !isAllowed(at.href)) throw notAllowed(at.href)
  }
  throw failed(url, `more than ${MAX_REDIRECTS} redirects`)
}

function checkLength(url: string, response: IncomingMessage, maxBytes = MAX_BYTES): IncomingMessage {
  if (!(Number(response.headers['content-length']) > maxBytes)) return response
  response.destroy()
  throw tooLarge(url, maxBytes)
}

/** S3 redirects to a bucket's region; no other service gets a signature. */
function isSameService(first: URL, at: URL): boolean {
  return at.host === first.host || (isS3Host(at.hostname) && isS3Host(first.hostname))
}

function notSigned({ protocol, host }: URL): ServeError {
  return new ServeError(
    'INVALID_ARGUMENT',
    `s3_sse_kms is supported for https addresses of S3 and for the hosts in s3_signing_hosts, not for ${protocol}//${host.slice(0, 260)}. ` +
      'Add the host to s3_signing_hosts, or register without s3_sse_kms.',
  )
}

function signed(url: string, at: URL): Record<string, string> {
  try {
    return signS3Get(at, credentialsFrom(process.env), new Date())
  } catch (error) {
    throw failed(url, (error as Error).message, error)
  }
}

async function get(url: string, at: URL, options: GetOptions): Promise<IncomingMessage> {
  try {
    return await httpGet(at, options)
  } catch (error) {
    throw failed(url, networkCause(error), error)
  }
}

async function* limited(
  url: string,
  body: IncomingMessage,
  { maxBytes = MAX_BYTES, onProgress }: DownloadOptions,
): AsyncIterable<Uint8Array> {
  const length = body.headers['content-length']
  const total = length === undefined ? undefined : Number(length)
  let bytes = 0
  try {
    for await (const chunk of body as AsyncIterable<Uint8Array>) {
      bytes += chunk.length
      if (bytes > maxBytes) throw tooLarge(url, maxBytes)
      onProgress?.(bytes, total)
      yield chunk
    }
  } catch (error) {
    throw error instanceof ServeError ? error : failed(url, networkCause(error), error)
  }
}

/** The error for a URL that is not allowed. */
export function notAllowed(url: string): ServeError {
  return new ServeError('MODEL_NOT_FOUND', `Given URL ${redactUrl(url)} does not match any allowed URL(s)`)
}

/** Without the address: the client may not know it. */
const PRIVATE =
  ': its address is loopback or private; the operator allows such addresses with allowed_urls or allow_private_urls=true'

/** A failed download with its cause, in one line for the operator; undefined for other errors. */
export function downloadFailure({ code, message, detail }: ServeError): string | undefined {
  return code === 'DOWNLOAD_FAILED' && detail !== undefined ? `${message}: ${detail}` : undefined
}

function failed(url: string, why: string, cause?: unknown): ServeError {
  const message = `Failed to download archive from: ${redactUrl(url)}`
  const isPrivate = cause instanceof PrivateAddressError
  const detail = isPrivate ? `it is ${cause.address}` : why
  return new ServeError('DOWNLOAD_FAILED', `${message}${isPrivate ? PRIVATE : ''}`, { detail, cause })
}

function tooLarge(url: string, maxBytes: number): ServeError {
  return failed(url, `it is larger than ${maxBytes} bytes`)
}

function notSaved(url: string, cause: unknown): ServeError {
  const detail = (cause as Error).message
  return new ServeError('INTERNAL', `Failed to save model: ${redactUrl(url)}`, { detail, cause })
}

function alreadyExists(target: string): ServeError {
  return new ServeError('INTERNAL', `Model file already exists ${basename(target)}`)
}
