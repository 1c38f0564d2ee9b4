import type { IncomingHttpHeaders } from 'node:http'
import { isIP } from 'node:net'
import { ServeError } from '../../../common/errors.ts'
import { isLocalhost, isLoopback } from '../../../common/loopback.ts'
import type { ListenAddress, Settings } from '../../config/settings.ts'
import type { ListenerKind } from './rest-state.ts'

export type PageSettings = Pick<
  Settings,
  | 'allowedHosts'
  | 'checkInferenceOrigin'
  | 'corsAllowedOrigin'
  | 'disableTokenAuthorization'
  | 'inferenceAddress'
  | 'managementAddress'
  | 'metricsAddress'
>

/** What the check remembers of a connection, so that it reads each name once. */
export interface CheckedConnection {
  /** The last Host header that passed. */
  checkedHost: string | undefined
}

/** Top-level names that no public name server answers for, so that no stranger can own a name below them. */
const PRIVATE_NAMES = /\.(?:local|internal|svc|home\.arpa|test)$/
/** A name, or an IPv6 address in brackets; then a port. */
const HOST_SHAPE = /^(\[[0-9a-f:.]+\]|[^:[\]/@\s]+)(?::\d{1,5})?$/

/**
 * Refuses requests that web pages of others send through the browser of somebody who can reach the server:
 * by a foreign origin, or by a name that its owner made stand for this machine (DNS rebinding). Clients that
 * are no browsers send no Origin. docs/security.md has the rules.
 */
export class PageCheck {
  readonly #off: boolean
  readonly #checksHost: boolean
  readonly #tokensOff: boolean
  readonly #anyOrigin: boolean
  readonly #origins: ReadonlySet<string>
  readonly #anyHost: boolean
  readonly #hosts: ReadonlySet<string>
  /** Each begins with a dot. */
  readonly #suffixes: readonly string[]

  constructor(listener: ListenerKind, settings: PageSettings) {
    const { allowedHosts, corsAllowedOrigin = '', disableTokenAuthorization } = settings
    const address = addressOf(listener, settings)
    const managed = listener === 'management' || listener === 'shared'
    this.#off = !managed && !settings.checkInferenceOrigin
    this.#tokensOff = disableTokenAuthorization
    this.#anyHost = allowedHosts.includes('*')
    // Proxies may pass on any name; only who listens on loopback can say that nobody calls by others.
    const isConcerned = address.kind === 'tcp' && (managed || isLoopbackHost(address.host))
    this.#checksHost = this.#tokensOff && !this.#anyHost && isConcerned
    this.#origins = new Set(corsAllowedOrigin.split(',').map((each) => each.trim().toLowerCase()))
    this.#anyOrigin = this.#origins.has('*')
    this.#suffixes = allowedHosts.filter((name) => name.startsWith('*.')).map((name) => name.slice(1))
    this.#hosts = new Set([...allowedHosts, ...(address.kind === 'tcp' ? [address.host.toLowerCase()] : [])])
  }

  /** @throws ServeError FOREIGN_PAGE */
  check(headers: IncomingHttpHeaders, connection: CheckedConnection): void {
    if (this.#off) return
    const { host, origin } = headers
    if (origin !== undefined || headers['sec-fetch-site'] !== undefined) this.#checkPage(headers)
    if (!this.#checksHost || host === connection.checkedHost) return
    if (host !== undefined && !this.#isKnown(host)) throw unknownHost(host)
    connection.checkedHost = host
  }

  #checkPage({ host, origin, 'sec-fetch-site': site }: IncomingHttpHeaders): void {
    if (this.#anyOrigin) return
    if (origin === undefined ? site === 'cross-site' : !this.#isAllowed(origin.toLowerCase(), host)) {
      throw foreignPage(origin)
    }
  }

  #isAllowed(origin: string, host: string | undefined): boolean {
    if (this.#origins.has(origin)) return true
    const place = /^https?:\/\/(.+)$/.exec(origin)?.[1]
    const name = place === undefined ? undefined : nameOf(place)
    if (place === undefined || name === undefined) return false
    if (isLoopbackHost(name) || this.#isConfigured(name)) return true
    // Without tokens, a page of a rebound name has the same origin as the server.
    return place === host?.toLowerCase() && (!this.#tokensOff || this.#isKnown(place))
  }

  /** Whether nobody else's name servers decide where the name leads. */
  #isKnown(host: string): boolean {
    const name = nameOf(host.toLowerCase())
    if (name === undefined) return false
    if (isIP(name) > 0 || isLocalhost(name) || !name.includes('.')) return true
    return this.#anyHost || PRIVATE_NAMES.test(name) || this.#isConfigured(name)
  }

  #isConfigured(name: string): boolean {
    return this.#hosts.has(name) || this.#suffixes.some((suffix) => name.endsWith(suffix))
  }
}

function addressOf(listener: ListenerKind, settings: PageSettings): ListenAddress {
  if (listener === 'management') return settings.managementAddress
  return listener === 'metrics' ? settings.metricsAddress : settings.inferenceAddress
}

function isLoopbackHost(name: string): boolean {
  return isIP(name) > 0 ? isLoopback(name) : isLocalhost(name)
}

/** The host without port, brackets and final dot; undefined if it is no host. */
function nameOf(host: string): string | undefined {
  const name = HOST_SHAPE.exec(host)?.[1]
  return name?.startsWith('[') ? name.slice(1, -1) : name?.replace(/\.$/, '')
}

function unknownHost(host: string): ServeError {
  const message = `The host ${shown(host)} is not known: use an address of the server, or add the name to allowed_hosts`
  return new ServeError('FOREIGN_PAGE', message)
}

function foreignPage(origin: string | undefined): ServeError {
  const page = origin === undefined ? 'Pages of other sites' : `Pages of ${shown(origin)}`
  return new ServeError(
    'FOREIGN_PAGE',
    `${page} must not use this server: set cors_allowed_origin to allow them`,
  )
}

function shown(text: string): string {
  return JSON.stringify(text.slice(0, 200))
}
