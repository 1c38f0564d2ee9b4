import type { IncomingMessage } from 'node:http'
import { ServeError } from '../common/errors.ts'
import { redactUrl } from '../common/texts.ts'
import { httpGet, PrivateAddressError } from './http-get.ts'
import { networkCause } from './download-errors.ts'

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
  /** Its body is still to be read, or destroyed. Status 2xx, 304 or 416. */
  readonly response: IncomingMessage
  /** X-Linked-Etag of the answers, redirects included: on Hugging Face the SHA-256 of a large file. */
  readonly linkedEtag: string | undefined
}

const MAX_REDIRECTS = 5
const IDLE_MS = 60_000
const PASSED: ReadonlySet<number> = new Set([200, 206, 304, 416])

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
    if (PASSED.has(statusCode)) return { response, linkedEtag }
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
