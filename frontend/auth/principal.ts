/** What a route or rpc asks of its caller. */
export type Scope = 'inference' | 'management' | 'metrics'

export const SCOPES: readonly Scope[] = ['inference', 'management', 'metrics']

/** How a caller showed who it is. `anonymous`: it did not, or it need not. */
export type PrincipalKind = 'anonymous' | 'token' | 'api key' | 'jwt' | 'certificate'

/** What a caller or an address may use; 0: no limit; absent: the server's default. */
export interface RateLimits {
  /** Requests that may start each second; as many may start at once. */
  readonly requestsPerSecond?: number | undefined
  /** Requests that may be open at one time; a stream is open until its last item. */
  readonly concurrentStreams?: number | undefined
  /** Bytes of requests and responses together, each second. */
  readonly bytesPerSecond?: number | undefined
}

/** Who a request is. Kind and name tell callers apart: one caller may have several JWTs, each an object. */
export interface Principal {
  /** Unique within its kind, for the audit log and for limits. */
  readonly name: string
  readonly kind: PrincipalKind
  readonly limits?: RateLimits | undefined
  /** `sees` is true for every name. */
  readonly seesAll: boolean
  /** Whether it may use this model or workflow at all, which need not exist. */
  sees(model: string): boolean
  /** Whether it has this scope, for this model if one is named. */
  allows(scope: Scope, model?: string): boolean
}

/** The name that an operator gave to a caller; undefined: TorchServe's keys, and nobody. */
export function keyNameOf({ kind, name }: Principal): string | undefined {
  return kind === 'anonymous' || kind === 'token' ? undefined : name
}

/** Kind and name of a caller; undefined: TorchServe's keys, which all operators share, and nobody. */
export function identityOf(principal: Principal): string | undefined {
  const name = keyNameOf(principal)
  return name === undefined ? undefined : `${principal.kind} ${name}`
}

/** Everybody, where the configuration asks for no token. */
export const ANYBODY: Principal = {
  name: 'anonymous',
  kind: 'anonymous',
  seesAll: true,
  sees: () => true,
  allows: () => true,
}

/** The caller of a route that asks for no token: it may do nothing else. */
export const NOBODY: Principal = {
  name: 'anonymous',
  kind: 'anonymous',
  seesAll: false,
  sees: () => false,
  allows: () => false,
}

/** What a caller may do. */
export interface Grant {
  readonly name: string
  readonly scopes: readonly Scope[]
  /** Models and workflows, with `*` for any text. */
  readonly models: readonly string[]
  /** Milliseconds since the epoch; Infinity: never. */
  readonly expires: number
  readonly limits?: RateLimits | undefined
}

/** A caller with rights of its own, which end when they expire or are revoked, open calls included. */
export class NamedPrincipal implements Principal {
  readonly kind: PrincipalKind
  readonly name: string
  readonly limits: RateLimits | undefined
  /** Also where it may use all models now: its rights can expire or be revoked. */
  readonly seesAll = false
  readonly #grant: Grant
  readonly #now: () => number
  #revoked = false

  constructor(kind: PrincipalKind, grant: Grant, now: () => number) {
    this.kind = kind
    this.name = grant.name
    this.limits = grant.limits
    this.#grant = grant
    this.#now = now
  }

  get isValid(): boolean {
    return !this.#revoked && this.#now() < this.#grant.expires
  }

  revoke(): void {
    this.#revoked = true
  }

  sees(model: string): boolean {
    return this.isValid && this.#grant.models.some((pattern) => matchesGlob(pattern, model))
  }

  allows(scope: Scope, model?: string): boolean {
    const { scopes } = this.#grant
    if (!this.isValid || !scopes.includes(scope) || (scope === 'management' && !managesAll(this.#grant)))
      return false
    return model === undefined || this.sees(model)
  }
}

/**
 * Management is for all models or none, because who registers a model chooses the code that runs under its
 * name. A name has no `*`, so only a pattern for all matches it.
 */
export function managesAll({ scopes, models }: Pick<Grant, 'scopes' | 'models'>): boolean {
  return !scopes.includes('management') || models.some((pattern) => matchesGlob(pattern, '*'))
}

/** Whether a name matches a pattern in which `*` stands for any text. Takes linear time. */
export function matchesGlob(pattern: string, name: string): boolean {
  const [first, ...rest] = pattern.split('*')
  const last = rest.pop()
  if (last === undefined) return pattern === name
  if (!name.startsWith(first!)) return false
  let from = first!.length
  for (const part of rest) {
    const found = name.indexOf(part, from)
    if (found === -1) return false
    from = found + part.length
  }
  return name.length - last.length >= from && name.endsWith(last)
}
