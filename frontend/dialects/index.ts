import type { GrpcDialect } from './grpc-dialect.ts'
import { openInferenceGrpc } from './open-inference/grpc.ts'
import { torchserveOpenInferenceGrpc } from './torchserve-open-inference/grpc.ts'
import { torchserveInferenceGrpc } from './torchserve/grpc.ts'
import { torchserveManagementGrpc } from './torchserve/grpc-management.ts'

/** Every service that gRPC clients can call. */
export const GRPC_DIALECTS: readonly GrpcDialect[] = [
  torchserveInferenceGrpc,
  torchserveOpenInferenceGrpc,
  torchserveManagementGrpc,
  openInferenceGrpc,
]
