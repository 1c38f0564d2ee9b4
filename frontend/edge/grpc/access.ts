import type { UntypedServiceImplementation } from '@grpc/grpc-js'
import type { ServeError } from '../../../common/errors.ts'
import type { TokenKind } from '../../auth/authorizer.ts'
import type { LoadedService } from './definitions.ts'
import { inferenceError, managementError, type CallError } from '../../dialects/torchserve/grpc-errors.ts'
import { callError } from '../../dialects/open-inference/grpc-errors.ts'

/** Who may call an rpc, and how the service tells that somebody may not. */
export interface Access {
  /** Undefined: whoever can connect. */
  readonly token: TokenKind | undefined
  readonly toCallError: (error: ServeError) => CallError
}

/** A service of a listener. */
export interface ServedService {
  readonly service: LoadedService
  readonly implementation: UntypedServiceImplementation
  readonly access: (rpc: string) => Access
}

/** Health and reflection: those who probe cannot send a token, and it tells nothing that is not public. */
export const forAll = (): Access => ({ token: undefined, toCallError: inferenceError })

export const withInferenceToken = (): Access => ({ token: 'inference', toCallError: inferenceError })

export const withManagementToken = (): Access => ({ token: 'management', toCallError: managementError })

const MANAGEMENT_RPCS: ReadonlySet<string> = new Set(['RepositoryModelLoad', 'RepositoryModelUnload'])

/** `inference.GRPCInferenceService`: whoever loads and unloads models manages them. */
export const forInferenceV2 = (rpc: string): Access => ({
  token: MANAGEMENT_RPCS.has(rpc) ? 'management' : 'inference',
  toCallError: callError,
})
