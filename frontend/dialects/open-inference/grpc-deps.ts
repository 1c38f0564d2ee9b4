import type { ServerDuplexStream } from '@grpc/grpc-js'
import type { Settings } from '../../config/settings.ts'
import type { ModelOperations } from '../../models/operations.ts'
import type { UnaryRpcDeps } from '../../edge/grpc/unary-rpc.ts'
import type { ModelInferRequest, ModelInferResponse, ModelStreamInferResponse } from './grpc-messages.ts'
import type { StreamShape } from './grpc-shape.ts'

export interface InferenceV2Deps extends UnaryRpcDeps {
  models: ModelOperations
  settings: Pick<Settings, 'maxRequestSize' | 'maxResponseSize' | 'enableModelApi'>
}

/** What a listener adds: the shape of its streams, and how messages become bytes in either. */
export interface StreamForm {
  readonly shape: StreamShape
  readonly encode: {
    readonly mlserver: (message: ModelInferResponse) => Buffer
    readonly triton: (message: ModelStreamInferResponse) => Buffer
  }
}

/** Messages are encoded before they are written. */
export type InferStream = ServerDuplexStream<ModelInferRequest, Buffer>
