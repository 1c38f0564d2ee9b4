import type { ServerInterceptingCallInterface } from '@grpc/grpc-js'
import { NOBODY, type Principal } from '../../auth/principal.ts'

type AuthContext = ReturnType<ServerInterceptingCallInterface['getAuthContext']>

/** Anything of grpc-js that has an auth context. */
export type Call = Pick<ServerInterceptingCallInterface, 'getAuthContext'>

/** What grpc-js calls the auth context of a call: here, who makes it. */
class Caller implements AuthContext {
  readonly transportSecurityType?: string
  readonly principal: Principal

  constructor(principal: Principal) {
    this.principal = principal
  }
}

/** One function for each principal, because every call needs one. */
const contexts = new WeakMap<Principal, () => AuthContext>()

/** From now on `principalOf` knows who makes this call. */
export function setPrincipal(call: Call, principal: Principal): void {
  let context = contexts.get(principal)
  if (context === undefined) {
    const caller = new Caller(principal)
    context = () => caller
    contexts.set(principal, context)
  }
  call.getAuthContext = context
}

/** Who makes a call, in the handler of an rpc. */
export function principalOf(call: Call): Principal {
  const context = call.getAuthContext()
  return context instanceof Caller ? context.principal : NOBODY
}
