import { openai } from './openai/rest.ts'
import { openInference } from './open-inference/rest.ts'
import type { RestDialect } from './rest-dialect.ts'
import { torchserve } from './torchserve/rest.ts'
import type { GrpcDialect } from './grpc-dialect.ts'
import { openInferenceGrpc } from './open-inference/grpc.ts'
import { torchserveOpenInferenceGrpc } from './torchserve-open-inference/grpc.ts'
import { torchserveInferenceGrpc } from './torchserve/grpc.ts'
import { torchserveManagementGrpc } from './torchserve/grpc-management.ts'

/** All REST dialects, in the order in which a request is offered to them. */
export const REST_DIALECTS: readonly RestDialect[] = [openInference, torchserve, openai]

/** Every service that gRPC clients can call. */
export const GRPC_DIALECTS: readonly GrpcDialect[] = [
  torchserveInferenceGrpc,
  torchserveOpenInferenceGrpc,
  torchserveManagementGrpc,
  openInferenceGrpc,
]
