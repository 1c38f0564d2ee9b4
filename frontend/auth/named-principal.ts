import type { Principal, PrincipalKind, RateLimits, Scope } from './principal.ts'

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
  /** Also where it may use all models: what it is offered asks again for each request. */
  readonly isNarrow = true
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
