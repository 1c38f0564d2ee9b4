import type { PeerCertificate } from 'node:tls'
import { createHash } from 'node:crypto'
import { ANYBODY, type Principal, type Scope, SCOPES } from './principal.ts'
import { API_HOLDER, type KeyFileTokens } from './token-store.ts'
import { ServeError } from '../../common/errors.ts'
import type { ClientCertificates } from './named-keys.ts'
import { groupOf } from '../../common/addresses.ts'
import { remember } from '../../common/maps.ts'

/** Who sends a token; a socket is one. No address (a Unix socket): failures are not limited. */
export interface Client {
  readonly remoteAddress?: string | undefined
  /** Over TLS: whether a configured CA has signed its certificate. */
  readonly authorized?: boolean | undefined
  /** Over TLS: its certificate; an empty object if there is none. */
  getPeerCertificate?(): PeerCertificate
}

export interface Authorizer {
  /**
   * Who sends this `Authorization` header value, if that caller has the scope (`any`: one of them). Anybody
   * has it when authorization is off; the client's address is not read then.
   * @param client after ten tokens from its address that are no key of this server, one per second is checked
   * and the others are refused unchecked; undefined: not limited
   * @throws ServeError UNAUTHORIZED with TorchServe's message
   */
  check(scope: Scope | 'any', authorization: string | undefined, client?: Client): Principal
  /**
   * Work that must be done before `check` can answer: the first time that a JWT is seen. Never rejects.
   * Undefined, as nearly always: `check` knows.
   */
  readonly prepare?:
    ((authorization: string | undefined, client?: Client) => Promise<void> | undefined) | undefined
  /**
   * The /token route: makes a new key of the given kind and rewrites key_file.json.
   * @param client as for `check`
   * @throws ServeError INVALID_API_KEY with TorchServe's message
   */
  rotate(kind: string | undefined, authorization: string | undefined, client?: Client): Promise<void>
}

/** What a client sends after `Bearer`. */
export interface Credential {
  readonly token: string
  /** SHA-256 of the token in hex. Look-ups use it, so that their time tells nothing of a secret. */
  readonly digest: string
}

/** One kind of callers besides those with TorchServe's keys. */
export interface IdentitySource {
  /** Who shows this; NOBODY: somebody whose rights have ended; undefined: nobody that it knows. */
  find(credential: Credential): Principal | undefined
  /** Work that must be done before `find` can answer; undefined: none. Never rejects. */
  readonly prepare?: ((credential: Credential) => Promise<void> | undefined) | undefined
  close(): void
}

/** Longest token that is looked at. */
const MAX_TOKEN = 8_192
const BEARER = /^Bearer\s+(\S+)$/

/** The credential of an `Authorization` header value; undefined: it has another form. */
function credentialOf(authorization: string): Credential | undefined {
  const token = BEARER.exec(authorization)?.[1]
  if (token === undefined || token.length > MAX_TOKEN) return undefined
  return { token, digest: digestOf(token) }
}

export function digestOf(token: string): string {
  return createHash('sha256').update(token).digest('hex')
}

interface GatekeeperOptions {
  /** Undefined: TorchServe's keys are off. */
  readonly tokens: KeyFileTokens | undefined
  readonly sources: readonly IdentitySource[]
  /** Undefined: no client certificate counts. */
  readonly certificates: ClientCertificates | undefined
  readonly limiter: FailureLimiter
}

/** Finds out who a client is, and lets nobody guess. */
export class Gatekeeper implements Authorizer {
  /** As Authorizer.prepare; undefined: no kind of identity needs it. */
  readonly prepare: Authorizer['prepare']
  readonly #options: GatekeeperOptions
  /** Nobody has to show who it is. */
  readonly #isOff: boolean

  constructor(options: GatekeeperOptions) {
    this.#options = options
    const { tokens, certificates, sources } = options
    this.#isOff = tokens === undefined && certificates === undefined && sources.length === 0
    const isNeeded = sources.some(({ prepare }) => prepare !== undefined)
    this.prepare = isNeeded ? (authorization, client) => this.#prepare(authorization, client) : undefined
  }

  /** Path of the file with TorchServe's keys; undefined: they are off. */
  get keyFile(): string | undefined {
    return this.#options.tokens?.keyFile
  }

  check(scope: Scope | 'any', authorization: string | undefined, client?: Client): Principal {
    if (this.#isOff) return ANYBODY
    // A client without a token (a health check, say) does not guess. One with a wrong token is not let in by
    // its certificate.
    const found =
      authorization === undefined ? this.#byCertificate(client) : this.#identify(authorization, client)
    if (found !== undefined && hasScope(found, scope)) return found
    const isBearer = authorization?.startsWith('Bearer ') === true
    const hint = isBearer ? '' : '. Send it in the header Authorization: Bearer <token>'
    throw new ServeError('UNAUTHORIZED', `${failure('Authorization')}${hint}`)
  }

  async rotate(kind: string | undefined, authorization: string | undefined, client?: Client): Promise<void> {
    const { tokens } = this.#options
    if (tokens === undefined)
      throw new ServeError(
        'ROUTE_NOT_FOUND',
        'Requested resource is not found, please refer to API document.',
      )
    const caller = authorization === undefined ? undefined : this.#identify(authorization, client)
    if (caller !== API_HOLDER || (kind !== 'management' && kind !== 'inference'))
      throw new ServeError('INVALID_API_KEY', failure('Authentication'))
    await tokens.rotate(kind)
  }

  /** Synchronous, because it also runs at process exit. */
  close(): void {
    const { tokens, sources } = this.#options
    for (const source of sources) source.close()
    tokens?.close()
  }

  #prepare(authorization: string | undefined, client: Client | undefined): Promise<void> | undefined {
    const { sources, limiter } = this.#options
    if (authorization === undefined) return undefined
    const address = client?.remoteAddress
    if (address !== undefined && !limiter.admits(address)) return undefined
    const credential = credentialOf(authorization)
    if (credential === undefined) return undefined
    for (const source of sources) {
      const work = source.prepare?.(credential)
      if (work !== undefined) return work
    }
    return undefined
  }

  /**
   * Who sends this. NOBODY: somebody whose rights have ended, who does not guess. One that is refused
   * unchecked cannot tell that from a wrong token.
   */
  #identify(authorization: string, client: Client | undefined): Principal | undefined {
    const { limiter } = this.#options
    const address = client?.remoteAddress
    if (address === undefined) return this.#find(authorization)
    if (!limiter.admits(address)) return undefined
    const found = this.#find(authorization)
    if (found === undefined) limiter.failed(address)
    else limiter.passed(address)
    return found
  }

  #find(authorization: string): Principal | undefined {
    const { tokens, sources } = this.#options
    const holder = tokens?.find(authorization)
    if (holder !== undefined || sources.length === 0) return holder
    const credential = credentialOf(authorization)
    if (credential === undefined) return undefined
    for (const source of sources) {
      const found = source.find(credential)
      if (found !== undefined) return found
    }
    return undefined
  }

  #byCertificate(client: Client | undefined): Principal | undefined {
    return client === undefined ? undefined : this.#options.certificates?.find(client)
  }
}

function hasScope(principal: Principal, scope: Scope | 'any'): boolean {
  return scope === 'any' ? SCOPES.some((each) => principal.allows(each)) : principal.allows(scope)
}

/** TorchServe's message. */
function failure(step: 'Authorization' | 'Authentication'): string {
  return `Token ${step} failed. Token either incorrect, expired, or not provided correctly`
}

/** Wrong tokens that an address may send at once. */
const BURST = 10
/** After that, one token is checked in this time. */
const REFILL_MS = 1_000
/**
 * For this time after a right token, an address is not locked out: behind a proxy, one client must not lock
 * out the others.
 */
const TRUST_MS = 3_600_000
const TRUST_STEP_MS = 60_000
/** Addresses that are remembered; the one that failed longest ago is forgotten first. */
const MAX_ADDRESSES = 10_000

interface Failures {
  /** Wrong tokens that are left. */
  left: number
  /** When `left` was right, in milliseconds. */
  at: number
}

/** Slows down clients that guess tokens, by address (IPv6: by /64 network). Its memory is bounded. */
export class FailureLimiter {
  readonly #now: () => number
  readonly #failures = new Map<string, Failures>()
  readonly #trusted = new Map<string, number>()

  constructor(now: () => number) {
    this.#now = now
  }

  /** Addresses that are remembered. */
  get size(): number {
    return this.#failures.size + this.#trusted.size
  }

  /** Whether a token from there is checked. */
  admits(address: string): boolean {
    if (this.#failures.size === 0) return true
    const group = groupOf(address)
    const failures = this.#failures.get(group)
    if (failures === undefined || this.#left(failures) >= 1) return true
    return this.#now() - (this.#trusted.get(group) ?? -Infinity) < TRUST_MS
  }

  failed(address: string): void {
    const group = groupOf(address)
    const failures = this.#failures.get(group)
    const left = failures === undefined ? BURST : this.#left(failures)
    remember(this.#failures, MAX_ADDRESSES, group, { left: Math.max(0, left - 1), at: this.#now() })
  }

  passed(address: string): void {
    const now = this.#now()
    const group = groupOf(address)
    if (now - (this.#trusted.get(group) ?? -Infinity) >= TRUST_STEP_MS)
      remember(this.#trusted, MAX_ADDRESSES, group, now)
  }

  #left({ left, at }: Failures): number {
    return Math.min(BURST, left + (this.#now() - at) / REFILL_MS)
  }
}
