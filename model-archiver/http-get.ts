import { lookup as dnsLookup, type LookupAddress } from 'node:dns'
import { get as getHttp, type IncomingMessage, type RequestOptions } from 'node:http'
import { get as getHttps } from 'node:https'
import { isIP, type LookupFunction, BlockList, isIPv4 } from 'node:net'
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

/**
 * Ranges that are not the public internet: loopback, private networks, and addresses that embed IPv4 ones.
 */
const V4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
].concat(['192.0.0.0/24', '192.168.0.0/16', '198.18.0.0/15', '224.0.0.0/4', '240.0.0.0/4'])
const V6 = [
  '::/96',
  '::ffff:0:0/96',
  '64:ff9b::/32',
  '100::/64',
  '2002::/16',
  'fc00::/7',
  'fe80::/10',
  'fec0::/10',
  'ff00::/8',
]

const hiddenV4 = blockList(V4, 'ipv4')
const hiddenV6 = blockList(V6, 'ipv6')

function blockList(subnets: readonly string[], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList()
  for (const subnet of subnets) {
    const [network, prefix] = subnet.split('/')
    list.addSubnet(network!, Number(prefix), family)
  }
  return list
}

/** Whether the server may connect to an IP address that a client chose. */
export function isPublicAddress(address: string): boolean {
  const bare = address.replace(/%.*$/, '')
  return isIPv4(bare) ? !hiddenV4.check(bare, 'ipv4') : !hiddenV6.check(bare, 'ipv6')
}

const NO_TLS = 'the host does not speak TLS there: the URL may need http, not https'

/** What to do about failures of the network, by Node's code. */
const CAUSES: ReadonlyMap<string, string> = new Map([
  ['ENOTFOUND', 'the name of the host is not known'],
  ['EAI_AGAIN', 'the name of the host could not be looked up, because no DNS server answered'],
  ['ECONNREFUSED', 'the host refused the connection: nothing listens on this port'],
  ['ECONNRESET', 'the connection broke off'],
  ['EPIPE', 'the connection broke off'],
  ['ETIMEDOUT', 'the host did not answer'],
  ['EHOSTUNREACH', 'the host cannot be reached'],
  ['ENETUNREACH', 'there is no network to the host'],
  ['CERT_HAS_EXPIRED', 'the certificate of the host has expired'],
  ['CERT_NOT_YET_VALID', 'the certificate of the host is not valid yet: compare the clocks'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'the certificate of the host is for another name'],
  ['ERR_SSL_WRONG_VERSION_NUMBER', NO_TLS],
  ['ERR_SSL_PACKET_LENGTH_TOO_LONG', NO_TLS],
  ['EPROTO', NO_TLS],
])

/** Codes of certificates that no known authority has signed. */
const UNTRUSTED = /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_\w+)$/
const AUTHORITY =
  'the certificate of the host is not signed by a known authority; NODE_EXTRA_CA_CERTS names the file of your own'

/** Why a request failed, in one line: in plain words where they are known, and in Node's. */
export function networkCause(thrown: unknown): string {
  const error = firstOf(thrown)
  const { code = '' } = error
  const words = UNTRUSTED.test(code) ? AUTHORITY : CAUSES.get(code)
  const openssl = /:SSL routines:[^:]*:([^:]+):/.exec(error.message)?.[1]
  const own = (openssl ?? `${error.message}${innerText(error)}`).replace(/\s+/g, ' ').trim() || code
  return words === undefined ? own : `${words} (${own.includes(code) ? own : `${own}, ${code}`})`
}

/** Node joins the failures of several addresses into an error without a message. */
function firstOf(thrown: unknown): NodeJS.ErrnoException {
  const error = thrown as NodeJS.ErrnoException
  return error instanceof AggregateError && error.errors.length > 0 ? firstOf(error.errors[0]) : error
}

function innerText({ cause }: Error): string {
  return cause instanceof Error ? `: ${cause.message}` : ''
}
