import { ServeError } from '../../common/errors.ts'
import { type Authorizer, type Client, credentialOf, type IdentitySource } from './authorizer.ts'
import type { ClientCertificates } from './client-certificates.ts'
import type { FailureLimiter } from './failure-limiter.ts'
import { SCOPES, type Principal, type Scope } from './principal.ts'

/** TorchServe's keys, as they are looked for. */
interface TokenHolders {
  /** As IdentitySource.find, from the whole header. */
  find(authorization: string): Principal | undefined
}

interface GatekeeperOptions {
  /** Undefined: TorchServe's keys are off. */
  readonly tokens: TokenHolders | undefined
  readonly sources: readonly IdentitySource[]
  /** Undefined: no client certificate counts. */
  readonly certificates: ClientCertificates | undefined
  readonly limiter: FailureLimiter
}

/** Finds out who a client is, and lets nobody guess. */
export class Gatekeeper {
  /** As Authorizer.prepare; undefined: no kind of identity needs it. */
  readonly prepare: Authorizer['prepare']
  readonly #options: GatekeeperOptions

  constructor(options: GatekeeperOptions) {
    this.#options = options
    const isNeeded = options.sources.some(({ prepare }) => prepare !== undefined)
    this.prepare = isNeeded ? (authorization, client) => this.#prepare(authorization, client) : undefined
  }

  /** @throws ServeError UNAUTHORIZED, whatever the reason */
  check(scope: Scope | 'any', authorization: string | undefined, client: Client | undefined): Principal {
    // A client without a token (a health check, say) does not guess. One with a wrong token is not let in by
    // its certificate.
    const found =
      authorization === undefined ? this.#byCertificate(client) : this.identify(authorization, client)
    if (found !== undefined && hasScope(found, scope)) return found
    const isBearer = authorization?.startsWith('Bearer ') === true
    const hint = isBearer ? '' : '. Send it in the header Authorization: Bearer <token>'
    throw new ServeError('UNAUTHORIZED', `${failure('Authorization')}${hint}`)
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
  identify(authorization: string, client: Client | undefined): Principal | undefined {
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
export function failure(step: 'Authorization' | 'Authentication'): string {
  return `Token ${step} failed. Token either incorrect, expired, or not provided correctly`
}
