import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { ServeError } from '../../../common/errors.ts'
import { isLocalhost, isLoopbackHost } from '../../../common/addresses.ts'
import { asksForIdentity, type IdentitySettings } from '../../config/exposure.ts'
import type { Settings } from '../../config/settings.ts'
import type { ListenAddress } from '../../config/listen-address.ts'
import { isIP, isIPv6 } from 'node:net'

/** What one listener serves. `shared`: inference and management on one port. */
export type ListenerKind = 'inference' | 'management' | 'shared' | 'metrics'

export function servesInference(kind: ListenerKind): boolean {
  return kind === 'inference' || kind === 'shared'
}

export function servesManagement(kind: ListenerKind): boolean {
  return kind === 'management' || kind === 'shared'
}

export type PageSettings = Pick<
  Settings,
  | 'allowedHosts'
  | 'checkInferenceOrigin'
  | 'corsAllowedOrigin'
  | 'inferenceAddress'
  | 'managementAddress'
  | 'metricsAddress'
> &
  IdentitySettings

/** What the check remembers of a connection, so that it reads each name once. */
export interface CheckedConnection {
  /** The last host that passed, as the client wrote it. */
  checkedHost: string | undefined
}

/** Top-level names that no public name server answers for, so that no stranger can own a name below them. */
const PRIVATE_NAMES = /\.(?:local|internal|svc|home\.arpa|test)$/
/** What Sec-Fetch-Site says of requests that no page of another site has sent; absent says the same. */
const OWN_SITES: ReadonlySet<unknown> = new Set([undefined, 'same-origin', 'none'])

/**
 * Refuses requests that web pages of others send through the browser of somebody who can reach the server:
 * by a foreign origin, or by a name that its owner made stand for this machine (DNS rebinding). Clients that
 * are no browsers send no Origin. docs/security.md has the rules.
 */
export class PageCheck {
  readonly #off: boolean
  readonly #checksHost: boolean
  readonly #needsHost: boolean
  /** Whether the listener asks nobody who it is. */
  readonly isOpen: boolean
  readonly #anyOrigin: boolean
  readonly #origins: ReadonlySet<string>
  readonly #anyHost: boolean
  readonly #hosts: ReadonlySet<string>
  readonly #hasAllowedHosts: boolean
  /** Each begins with a dot. */
  readonly #suffixes: readonly string[]

  constructor(listener: ListenerKind, settings: PageSettings) {
    const { allowedHosts } = settings
    const address = addressOf(listener, settings)
    const managed = servesManagement(listener)
    this.#off = !managed && !settings.checkInferenceOrigin
    this.isOpen = !asksForIdentity(settings, address.kind === 'tcp' && address.tls)
    this.#anyHost = allowedHosts.includes('*')
    // Proxies may pass on any name; only who listens on loopback can say that nobody calls by others.
    const isConcerned = address.kind === 'tcp' && (managed || isLoopbackHost(address.host))
    this.#checksHost = this.isOpen && !this.#off && !this.#anyHost && isConcerned
    this.#needsHost = this.#checksHost && managed
    this.#origins = new Set(allowedOrigins(settings).map((each) => each.toLowerCase()))
    this.#anyOrigin = this.#origins.has('*')
    this.#hasAllowedHosts = allowedHosts.length > 0
    this.#suffixes = allowedHosts.filter((name) => name.startsWith('*.')).map((name) => name.slice(1))
    this.#hosts = new Set([...allowedHosts, ...(address.kind === 'tcp' ? [address.host.toLowerCase()] : [])])
  }

  /**
   * @param authority of a target that is a whole URL: it takes the place of Host (RFC 9112, 3.2.2)
   * @param isOpened whether a page of the server is opened in a tab: opensPage
   * @throws ServeError INVALID_ARGUMENT when the host is none, FOREIGN_PAGE
   */
  check(
    headers: IncomingHttpHeaders,
    authority: string | undefined,
    connection: CheckedConnection,
    isOpened = false,
  ): void {
    const host = authority ?? headers.host
    if (host === undefined) {
      if (this.#needsHost) throw new ServeError('FOREIGN_PAGE', 'The header Host is required')
    } else if (host !== connection.checkedHost) {
      this.#checkHost(host)
      connection.checkedHost = host
    }
    const { origin, 'sec-fetch-site': site } = headers
    if (origin === undefined ? isOpened || OWN_SITES.has(site) : this.#isAllowed(origin.toLowerCase(), host))
      return
    if (!this.#off && !this.#anyOrigin) throw this.#foreignPage(origin, host)
  }

  #checkHost(text: string): void {
    const host = parseHost(text)
    if (host === undefined)
      throw new ServeError('INVALID_ARGUMENT', `The host ${shown(text)} must be a name or an address`)
    if (this.#checksHost && !this.#isKnown(host))
      throw new ServeError('FOREIGN_PAGE', `The host ${shown(text)} is not known: ${this.#trusting(host)}`)
  }

  #isAllowed(origin: string, host: string | undefined): boolean {
    if (this.#origins.has(origin)) return true
    const page = pageOf(origin)
    if (page === undefined) return false
    if (isLoopbackHost(page.name) || this.#isConfigured(page.name)) return true
    // Without tokens, a page of a rebound name has the same origin as the server.
    return page.place === host?.toLowerCase() && (!this.isOpen || this.#isKnown(page))
  }

  #foreignPage(origin: string | undefined, host: string | undefined): ServeError {
    const page = origin === undefined ? undefined : pageOf(origin.toLowerCase())
    const isOwn = page?.kind === 'domain' && page.name === parseHost(host ?? '')?.name
    const pages = origin === undefined ? 'Pages of other sites' : `Pages of ${shown(origin)}`
    let remedy = allows('cors_allowed_origin=*', 'all pages')
    if (page !== undefined) remedy = isOwn ? this.#trusting(page) : allows(`cors_allowed_origin=${origin}`)
    return new ServeError('FOREIGN_PAGE', `${pages} must not use this server: ${remedy}`)
  }

  /** The line with which the host is trusted. Those that are trusted are not for whoever is refused. */
  #trusting({ name, kind }: Host): string {
    if (kind !== 'domain') return 'use a name or an address of the server'
    return allows(`allowed_hosts=${this.#hasAllowedHosts ? '...,' : ''}${name}`)
  }

  /** Whether nobody else's name servers decide where the name leads. */
  #isKnown({ name, kind }: Host): boolean {
    if (this.#anyHost || kind === 'address') return true
    if (kind === 'other') return false
    if (isLocalhost(name) || !name.includes('.')) return true
    return PRIVATE_NAMES.test(name) || this.#isConfigured(name)
  }

  #isConfigured(name: string): boolean {
    return this.#hosts.has(name) || this.#suffixes.some((suffix) => name.endsWith(suffix))
  }
}

/**
 * Whether somebody opens a page of the server in a tab, maybe by a link of another site. Pages are files that
 * do nothing and hold no secret; frames are no tabs (https://www.w3.org/TR/fetch-metadata/).
 */
export function opensPage({ method, headers }: IncomingMessage, segments: readonly string[]): boolean {
  const isPage = segments.length === 0 || (segments.length === 1 && segments[0] === 'console')
  return (
    isPage &&
    method === 'GET' &&
    headers['sec-fetch-mode'] === 'navigate' &&
    headers['sec-fetch-dest'] === 'document'
  )
}

/** The items of cors_allowed_origin. */
export function allowedOrigins({ corsAllowedOrigin }: Pick<Settings, 'corsAllowedOrigin'>): string[] {
  return corsAllowedOrigin?.split(',').map((each) => each.trim()) ?? []
}

function addressOf(listener: ListenerKind, settings: PageSettings): ListenAddress {
  if (listener === 'management') return settings.managementAddress
  return listener === 'metrics' ? settings.metricsAddress : settings.inferenceAddress
}

/** The host of an origin, and the place as `Host` would have it; undefined: it is no site's. */
export function pageOf(origin: string): (Host & { place: string }) | undefined {
  const place = /^https?:\/\/(.+)$/.exec(origin)?.[1]
  const host = place === undefined ? undefined : parseHost(place)
  return place === undefined || host === undefined || host.kind === 'other' ? undefined : { ...host, place }
}

function allows(line: string, what = 'it'): string {
  return `the line ${line} in config.properties allows ${what}`
}

function shown(text: string): string {
  return JSON.stringify(text.slice(0, 200))
}

/** The host that a request or a web page names. */
export interface Host {
  /** In lower case, without port, brackets and final dot. */
  readonly name: string
  /** `other`: RFC 3986 allows it, but neither a domain name nor an address looks like that. */
  readonly kind: 'address' | 'domain' | 'other'
}

/** uri-host [":" port] (RFC 9110, 7.2), with a registered name of RFC 3986, 3.2.2. */
const SHAPE = /^(?:\[([0-9a-f:.]+)\]|((?:[\w.~!$&'()*+,;=-]|%[0-9a-f]{2})*))(?::\d{0,5})?$/i
/** Labels that may be part of names in DNS; with `_`, which container names have. */
const DOMAIN = /^[\w-]+(?:\.[\w-]+)*$/
const MAX_LENGTH = 300

/** The host of a `Host` value, or of the authority in a URL without user data; undefined: it is none. */
export function parseHost(text: string): Host | undefined {
  if (text.length > MAX_LENGTH) return undefined
  const [, address, named] = SHAPE.exec(text) ?? []
  if (address !== undefined)
    return isIPv6(address) ? { name: address.toLowerCase(), kind: 'address' } : undefined
  if (named === undefined) return undefined
  const name = named.toLowerCase().replace(/\.$/, '')
  if (isIP(name) > 0) return { name, kind: 'address' }
  return { name, kind: DOMAIN.test(name) ? 'domain' : 'other' }
}
