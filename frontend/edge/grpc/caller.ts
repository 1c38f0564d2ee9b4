import type { ServerInterceptingCallInterface } from '@grpc/grpc-js'
import { identityOf, keyNameOf, NOBODY, type Principal } from '../../auth/principal.ts'
import type { Visit } from '../../auth/rate-limiter.ts'
import type { RequestSpan } from '../../observe/traces/tracing.ts'
import { type Sender, UNIX_SOCKET } from '../../jobs/job-request.ts'

type AuthContext = ReturnType<ServerInterceptingCallInterface['getAuthContext']>

/** What every call of grpc-js tells of who makes it. */
export type Call = Pick<ServerInterceptingCallInterface, 'getAuthContext' | 'getPeer'>

/** What grpc-js calls the auth context of a call: here, who makes it. */
class Caller implements AuthContext {
  readonly transportSecurityType?: string
  readonly principal: Principal
  /** What the call uses of limits; undefined: there are none. */
  readonly visit: Visit | undefined
  /** Undefined: tracing is off. */
  readonly span: RequestSpan | undefined

  constructor(principal: Principal, visit?: Visit, span?: RequestSpan) {
    this.principal = principal
    this.visit = visit
    this.span = span
  }
}

/** One function for each principal, because every call needs one, and most have nothing else. */
const contexts = new WeakMap<Principal, () => AuthContext>()

/**
 * From now on `principalOf` knows who makes this call, `visitOf` what it uses of limits, and CallSender its
 * span.
 */
export function setCaller(call: Call, principal: Principal, visit?: Visit, span?: RequestSpan): void {
  const isOther = visit !== undefined || span !== undefined
  let context = isOther ? undefined : contexts.get(principal)
  if (context === undefined) {
    const caller = new Caller(principal, visit, span)
    context = () => caller
    if (!isOther) contexts.set(principal, context)
  }
  call.getAuthContext = context
}

/** Who makes a call, in the handler of an rpc. */
export function principalOf(call: Call): Principal {
  const context = call.getAuthContext()
  return context instanceof Caller ? context.principal : NOBODY
}

/** Who makes a call. */
export class CallSender implements Sender {
  readonly #call: Call

  constructor(call: Call) {
    this.#call = call
  }

  /** grpc-js writes `127.0.0.1:50000` and `[::1]:50000`, and `unknown` for a Unix socket. */
  get address(): string {
    const [, bracketed, plain] = /^(?:\[(.*)\]|(.*)):\d+$/.exec(this.#call.getPeer()) ?? []
    return bracketed ?? plain ?? UNIX_SOCKET
  }

  get keyName(): string | undefined {
    return keyNameOf(principalOf(this.#call))
  }

  get identity(): string | undefined {
    return identityOf(principalOf(this.#call))
  }

  get span(): RequestSpan | undefined {
    const context = this.#call.getAuthContext()
    return context instanceof Caller ? context.span : undefined
  }
}

/** What a call uses of limits, in the handler of an rpc; undefined: there are none. */
export function visitOf(call: Call): Visit | undefined {
  const context = call.getAuthContext()
  return context instanceof Caller ? context.visit : undefined
}
