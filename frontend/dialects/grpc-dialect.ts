import type { ConnectionPools } from '../edge/connection-plan.ts'
import type { UntypedServiceImplementation } from '@grpc/grpc-js'
import type { Settings } from '../config/settings.ts'
import type { GrpcLog } from '../edge/grpc/call-error.ts'
import type { GrpcLimits } from '../edge/grpc/limits.ts'
import type { ListenersDeps } from '../edge/grpc/server.ts'
import type { ServiceFacts } from '../edge/grpc/service.ts'
import type { SequenceSettings } from '../jobs/sequence-headers.ts'
import type { ModelOperations } from '../models/operations.ts'
import type { WorkflowOperations } from '../workflows/operations.ts'

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
> &
  GrpcLimits &
  SequenceSettings

/** What a dialect may use. Tokens are checked before it hears of a call. */
export interface GrpcDeps {
  readonly models: ModelOperations
  readonly workflows: WorkflowOperations
  readonly settings: GrpcSettings
  readonly log: GrpcLog
}

/** The same with what the listeners themselves need. */
export type GrpcServersDeps = GrpcDeps & Omit<ListenersDeps, 'limits'> & { readonly pools?: ConnectionPools }

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
