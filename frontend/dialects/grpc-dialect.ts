import { callOf, type Surface } from '../edge/grpc/call.ts'
import type { Admission, ClientAdmission } from '../edge/admission/admission.ts'
import type { UntypedServiceImplementation } from '@grpc/grpc-js'
import type { Settings } from '../config/settings.ts'
import type { ServeError } from '../../common/errors.ts'
import type { CallError, GrpcLog } from '../edge/grpc/call-error.ts'
import type { GrpcLimits } from '../edge/grpc/limits.ts'
import type { ListenersDeps } from '../edge/grpc/server.ts'
import type { ServiceFacts } from '../edge/grpc/definitions.ts'
import { unaryRpc } from '../edge/grpc/unary-rpc.ts'
import type { ModelOperations } from '../models/operations.ts'
import type { SequenceSettings } from '../jobs/sequence-headers.ts'
import type { Sender } from '../jobs/job-request.ts'
import type { Operations } from '../edge/call.ts'

/** The listeners of gRPC; the last two are opened where they have a port. */
export type GrpcListenerKind = 'inference' | 'management' | 'open-inference' | 'triton'

/** What the gRPC half needs to know of the configuration. */
export type GrpcSettings = Pick<
  Settings,
  | 'grpcInferenceAddress'
  | 'grpcInferencePort'
  | 'grpcManagementAddress'
  | 'grpcManagementPort'
  | 'openInferenceGrpcAddress'
  | 'openInferenceGrpcPort'
  | 'tritonGrpcPort'
  | 'grpcInferenceMaxConnectionAgeMs'
  | 'grpcInferenceMaxConnectionAgeGraceMs'
  | 'grpcManagementMaxConnectionAgeMs'
  | 'grpcManagementMaxConnectionAgeGraceMs'
  | 'maxRequestSize'
  | 'maxResponseSize'
  | 'enableModelApi'
  | 'openInferenceProtocol'
  | 'grpcReflectionRequireToken'
> &
  GrpcLimits &
  SequenceSettings

/** What a dialect may use. Tokens are checked before it hears of a call. */
export interface GrpcDeps {
  readonly settings: GrpcSettings
  readonly log: GrpcLog
  readonly audit: ListenersDeps['audit']
}

/** What one call may use. */
export type GrpcCallDeps = Operations & Pick<GrpcDeps, 'settings' | 'log'> & { readonly sender: Sender }

export function callDeps({ settings, log }: GrpcDeps, surface: Surface): GrpcCallDeps {
  const call = callOf(surface)
  return { models: call.models, workflows: call.workflows, settings, log, sender: call }
}

/** Makes the rpcs of a service that ask for something of the models which their caller may use. */
export function modelsRpcs({ log }: GrpcDeps, toCallError: (error: ServeError) => CallError) {
  return <Request>(
    name: string,
    answer: (request: Request, models: ModelOperations) => object | Promise<object>,
  ) =>
    unaryRpc<Request>(log, name, {
      answer: (request, call) => answer(request, call.models),
      toCallError,
    })
}

/** What the listeners need. */
export type GrpcServersDeps = Operations &
  Pick<GrpcDeps, 'settings' | 'log'> &
  Omit<ListenersDeps, 'limits' | 'admission' | 'operations'> & {
    /** Without the pools of its connections: nothing limits them. */
    readonly admission: ClientAdmission & Partial<Pick<Admission, 'inference' | 'reserve'>>
  }

/**
 * One gRPC service. It is registered by its line in dialects/index.ts; health and reflection tell of it by
 * themselves.
 */
export interface GrpcDialect {
  /** Where it is served. */
  readonly listeners: readonly GrpcListenerKind[]
  /** Whether the configuration wants it. Absent: it does. */
  isOn?(settings: GrpcSettings): boolean
  /** The service as its .proto file has it, its tokens and errors. Called more than once. */
  facts(listener: GrpcListenerKind): ServiceFacts
  /** Its handlers by rpc name. */
  implement(deps: GrpcDeps, listener: GrpcListenerKind): UntypedServiceImplementation
}
