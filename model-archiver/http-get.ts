import { lookup as dnsLookup, type LookupAddress } from 'node:dns'
import { get as getHttp, type IncomingMessage, type RequestOptions } from 'node:http'
import { get as getHttps } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { isPublicAddress } from './public-address.ts'
import { startTimer } from '../common/timer.ts'

export interface GetOptions {
  readonly headers: Readonly<Record<string, string>>
  /** Whether loopback and private addresses are allowed. */
  readonly allowPrivate: boolean
  /** One address that is allowed even if it is private. */
  readonly alsoAllowed?: string | undefined
  /** Milliseconds without a byte until the request fails, and until the whole head of the answer is there. */
  readonly idleMs: number
  readonly signal: AbortSignal
}

/**
 * Sends one GET; redirects are returned. Checks the address when connecting, so that a DNS name cannot change
 * its address between check and use.
 * @throws Error of the network, or one that names the refused address
 */
export function httpGet(
  url: URL,
  { headers, allowPrivate, alsoAllowed, idleMs, signal }: GetOptions,
): Promise<IncomingMessage> {
  const isAllowed = (address: string): boolean => address === alsoAllowed || isPublicAddress(address)
  const options: RequestOptions = {
    // A compressed body would not be the file, and its length would be unknown.
    headers: { 'accept-encoding': 'identity', 'user-agent': 'torchserve-ts', ...headers },
    agent: false,
    timeout: idleMs,
    signal,
    lookup: allowPrivate ? undefined : checkedLookup(isAllowed),
  }
  return new Promise((resolve, reject) => {
    const host = url.hostname.replace(/^\[|\]$/g, '')
    // Literal addresses skip the DNS lookup, where other addresses are checked.
    if (!allowPrivate && isIP(host) !== 0 && !isAllowed(host)) throw new PrivateAddressError(host)
    let response: IncomingMessage | undefined
    const request = (url.protocol === 'https:' ? getHttps : getHttp)(url, options, (answer) => {
      response = answer
      clearTimeout(head)
      resolve(answer)
    })
    // A byte now and then keeps a connection from being idle.
    const head = startTimer(() => {
      request.destroy(new Error(`no answer arrived in full within ${idleMs / 1000} s`))
    }, idleMs)
    request.on('timeout', () => {
      const error = new Error(`no data arrived for ${idleMs / 1000} s`)
      // Its reader would only hear that the connection was aborted.
      response?.destroy(error)
      request.destroy(error)
    })
    request.on('error', reject)
    request.on('close', () => clearTimeout(head))
  })
}

function checkedLookup(isAllowed: (address: string) => boolean): LookupFunction {
  return (host, options, done) => {
    dnsLookup(host, { ...options, all: true }, (error, addresses: LookupAddress[]) => {
      const allowed = addresses?.filter(({ address }) => isAllowed(address))
      if (error !== null) done(error, [])
      else if (allowed.length === 0) done(new PrivateAddressError(addresses[0]!.address), [])
      else if (options.all === true) done(null, allowed)
      else done(null, allowed[0]!.address, allowed[0]!.family)
    })
  }
}

/** The address of a URL is not public, and must be. */
export class PrivateAddressError extends Error {
  readonly address: string

  constructor(address: string) {
    super(
      `${address} is a loopback or private address; set allowed_urls or allow_private_urls=true to allow it`,
    )
    this.address = address
  }
}
