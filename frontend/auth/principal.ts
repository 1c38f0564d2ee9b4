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
  /** It may use only some models. False: `sees` is true for every name. */
  readonly isNarrow: boolean
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
  isNarrow: false,
  sees: () => true,
  allows: () => true,
}

/** The caller of a route that asks for no token: it may do nothing else. */
export const NOBODY: Principal = {
  name: 'anonymous',
  kind: 'anonymous',
  isNarrow: true,
  sees: () => false,
  allows: () => false,
}
