import type { UntypedServiceImplementation } from '@grpc/grpc-js'
import type { Scope } from '../../auth/principal.ts'
import type { ToCallError } from './call-error.ts'
import type { LoadedService } from './definitions.ts'
import type { MessageShape } from './message-shape.ts'

/** What callers and tools can know of a service without calling it. */
export interface ServiceFacts {
  readonly definition: LoadedService
  /** The token that an rpc asks for; undefined: whoever can connect may call it. */
  token(rpc: string): Scope | undefined
  /** Its responses are encoded before they are written, so that those which wait can leave in one write. */
  readonly eager?: boolean
  /** For calls that are refused before the implementation hears of them. */
  readonly toCallError: ToCallError
}

/** A service that a listener has. */
export interface GrpcService extends ServiceFacts {
  /** Handlers by rpc name. Tokens are checked before they are called. */
  readonly implementation: UntypedServiceImplementation
}

/** One rpc of a service. */
export interface Rpc {
  /** `/package.Service/Method` */
  readonly path: string
  readonly token: Scope | undefined
  /** Whether the client may send any number of messages. */
  readonly isStream: boolean
  readonly toCallError: ToCallError
  readonly request: MessageShape
}

/** Every rpc of some services: for the gate, and for tests that walk them all. */
export function rpcsOf(services: readonly ServiceFacts[]): Rpc[] {
  return services.flatMap(({ definition, token, toCallError }) =>
    Object.entries(definition.definition).map(([name, { path, requestStream }]) => {
      const request = definition.requests.get(name)!
      return { path, token: token(name), isStream: requestStream, toCallError, request }
    }),
  )
}
