import { createHash } from 'node:crypto'
import type * as Jose from 'jose'
import { isObject, ownValue } from '../../common/json.ts'
import { remember } from '../../common/maps.ts'
import type { Credential, IdentitySource } from './gatekeeper.ts'
import { NamedPrincipal, NOBODY, type Principal, type Scope, SCOPES } from './principal.ts'
import { WatchedFile } from './watched-file.ts'

/** Tokens whose check is remembered; the one that came first is forgotten first. */
const MAX_KNOWN = 10_000
/** The same for tokens that were refused, which anybody can make. */
const MAX_REFUSED = 1_000
/** A refusal is remembered for this time: the key may appear in the set. */
const REFUSED_MS = 5_000
/** Tokens that may be checked at the same time; more are refused. */
const MAX_PENDING = 1_000
const SCOPE_PREFIX = 'torchserve:'
const MAX_PATTERNS = 1_000
/** `none` and algorithms with a shared secret are none of them. */
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA']
/** Seconds by which the clock of the issuer may be off. */
const CLOCK_SKEW = 30
/** Characters of a subject that is kept as it is. */
const MAX_SUBJECT = 200

export interface JwtOptions {
  readonly jose: typeof Jose
  readonly keys: KeySet
  readonly issuer: string
  readonly audience: readonly string[]
  readonly scopeClaim: string
  readonly modelsClaim: string
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

interface Checked {
  /** Undefined: nothing shows that it was made by the issuer. */
  readonly principal: Principal | undefined
  /** Milliseconds since the epoch. */
  readonly until: number
}

/** Callers with a JWT of one issuer. A signature is checked once, and then remembered by the token's hash. */
export class JwtSource implements IdentitySource {
  readonly #options: JwtOptions
  readonly #known = new Map<string, Checked>()
  readonly #refused = new Map<string, Checked>()
  readonly #pending = new Map<string, Promise<void>>()

  constructor(options: JwtOptions) {
    this.#options = options
  }

  find({ digest }: Credential): Principal | undefined {
    return this.#checked(digest)?.principal
  }

  readonly prepare = (credential: Credential): Promise<void> | undefined => {
    const { token, digest } = credential
    if (!isCompact(token) || this.#checked(digest) !== undefined) return undefined
    const pending = this.#pending.get(digest)
    if (pending !== undefined) return pending
    if (this.#pending.size >= MAX_PENDING || !this.#mayBeOurs(token)) return undefined
    const work = this.#verify(credential).finally(() => this.#pending.delete(digest))
    this.#pending.set(digest, work)
    return work
  }

  close(): void {
    this.#options.keys.close()
  }

  #checked(digest: string): Checked | undefined {
    const checked = this.#known.get(digest) ?? this.#refused.get(digest)
    return checked !== undefined && this.#options.now() < checked.until ? checked : undefined
  }

  /** Before any key is looked for: who only guesses does not make the server fetch or compute. */
  #mayBeOurs(token: string): boolean {
    const { jose, issuer, audience } = this.#options
    try {
      const { alg } = jose.decodeProtectedHeader(token)
      const { iss, aud } = jose.decodeJwt(token)
      return (
        alg !== undefined &&
        ALGORITHMS.includes(alg) &&
        iss === issuer &&
        [aud].flat().some((each) => each !== undefined && audience.includes(each))
      )
    } catch {
      return false
    }
  }

  async #verify({ token, digest }: Credential): Promise<void> {
    const { jose, keys, issuer, audience, now } = this.#options
    try {
      const { payload } = await jose.jwtVerify(token, keys.find, {
        issuer,
        audience: [...audience],
        algorithms: ALGORITHMS,
        clockTolerance: CLOCK_SKEW,
        requiredClaims: ['exp', 'sub'],
        currentDate: new Date(now()),
      })
      const expires = (payload.exp! + CLOCK_SKEW) * 1_000
      const until = Math.min(expires, now() + JWKS_MAX_AGE_MS)
      remember(this.#known, MAX_KNOWN, digest, { principal: this.#principal(payload, expires), until })
    } catch (error) {
      // Its issuer did sign what is only out of date or for another audience.
      const isSigned =
        error instanceof jose.errors.JWTExpired || error instanceof jose.errors.JWTClaimValidationFailed
      const refused = { principal: isSigned ? NOBODY : undefined, until: now() + REFUSED_MS }
      remember(this.#refused, MAX_REFUSED, digest, refused)
    }
  }

  #principal(payload: Jose.JWTPayload, expires: number): Principal {
    const { scopeClaim, modelsClaim, now } = this.#options
    const claimed = texts(claimOf(payload, scopeClaim)) ?? []
    const scopes = claimed.flatMap((text): Scope[] => SCOPES.filter((scope) => text === SCOPE_PREFIX + scope))
    const value = claimOf(payload, modelsClaim)
    // A claim that cannot be read allows nothing; only without it are all models meant.
    const models = value === undefined ? ['*'] : (texts(value) ?? [])
    return new NamedPrincipal('jwt', { name: subjectOf(payload.sub!), scopes, models, expires }, now)
  }
}

/**
 * The name of a caller. The hash of a long subject stands for its end, so that two subjects are never taken
 * for one. The result is longer than a subject that stays as it is, so it is no other subject either.
 */
function subjectOf(subject: string): string {
  if (subject.length <= MAX_SUBJECT) return subject
  const hash = createHash('sha256').update(subject, 'utf16le').digest('hex')
  return `${subject.slice(0, MAX_SUBJECT - hash.length)} sha256:${hash}`
}

/** Three parts; whatever else it is, it is no API key. */
function isCompact(token: string): boolean {
  return token.startsWith('ey') && token.split('.', 4).length === 3
}

/** A claim by its name, or by a path such as `realm_access.roles`. */
function claimOf(payload: Jose.JWTPayload, name: string): unknown {
  const named = ownValue(payload, name)
  if (named !== undefined) return named
  let value: unknown = payload
  for (const part of name.split('.')) {
    if (!isObject(value)) return undefined
    value = ownValue(value, part)
  }
  return value
}

/** A list of texts, or a text with blanks between its words; undefined: neither. */
function texts(value: unknown): string[] | undefined {
  const list = typeof value === 'string' ? value.split(' ').filter((word) => word !== '') : value
  if (!Array.isArray(list) || list.length > MAX_PATTERNS) return undefined
  return list.filter((item): item is string => typeof item === 'string')
}

type KeyFinder = Jose.JWTVerifyGetKey

/** A key that is not in the set makes the server ask for the set again, at most once in this time. */
const COOLDOWN_MS = 30_000
/** After a failure the set is asked for again after this time. */
const RETRY_MS = 5_000
/** The set is asked for again when it is older. */
const JWKS_MAX_AGE_MS = 600_000
const MAX_JWKS_BYTES = 1_048_576

export interface KeySet {
  readonly find: KeyFinder
  close(): void
}

export interface KeySetOptions {
  readonly jose: typeof Jose
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly warn: (message: string) => void
}

/** The keys of an https or http address, fetched when the first token is checked. */
export function remoteKeySet(url: URL, { jose, now, warn }: KeySetOptions): KeySet {
  const fetcher = new SparingFetch(now, warn)
  const find = jose.createRemoteJWKSet(url, {
    cooldownDuration: COOLDOWN_MS,
    cacheMaxAge: JWKS_MAX_AGE_MS,
    [jose.customFetch]: fetcher.fetch,
  })
  return { find, close: () => undefined }
}

/** The keys of a file, read again when it changes. */
export async function fileKeySet(path: string, { jose, warn }: KeySetOptions): Promise<KeySet> {
  let keys: KeyFinder | undefined
  const onText = (text: string): void => {
    keys = jose.createLocalJWKSet(JSON.parse(text) as Jose.JSONWebKeySet)
  }
  const complaint = `The key set ${path} cannot be used: `
  const file = new WatchedFile({ path, onText, warn, complaint })
  await file.open()
  return { find: (header, token) => keys!(header, token), close: () => file.close() }
}

/** jose waits after a success, but asks for each token again while the address fails. */
class SparingFetch {
  readonly #now: () => number
  readonly #warn: (message: string) => void
  #failedAt = -Infinity

  constructor(now: () => number, warn: (message: string) => void) {
    this.#now = now
    this.#warn = warn
  }

  readonly fetch: Jose.FetchImplementation = async (url, options) => {
    if (this.#now() - this.#failedAt < RETRY_MS)
      throw new Error('The key set could not be fetched a moment ago')
    try {
      return await this.#checked(await fetch(url, options))
    } catch (error) {
      this.#failedAt = this.#now()
      this.#warn(
        `The key set ${url} cannot be fetched: ${reasonOf(error)}; tokens that it would check are refused`,
      )
      throw error
    }
  }

  /** @throws Error unless it is a key set of a sane size */
  async #checked(response: Response): Promise<Response> {
    if (response.status !== 200) throw new Error(`status ${response.status}`)
    const chunks: Uint8Array[] = []
    let bytes = 0
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      bytes += chunk.byteLength
      if (bytes > MAX_JWKS_BYTES) throw new Error('it is larger than 1 MiB')
      chunks.push(chunk)
    }
    const text = Buffer.concat(chunks).toString()
    const { keys } = JSON.parse(text) as { keys?: unknown }
    if (!Array.isArray(keys)) throw new Error('it is not a JSON Web Key Set')
    return new Response(text, { headers: { 'content-type': 'application/json' } })
  }
}

function reasonOf(error: unknown): string {
  const { message, cause } = error as Error
  return cause instanceof Error ? `${message} (${cause.message})` : message
}
