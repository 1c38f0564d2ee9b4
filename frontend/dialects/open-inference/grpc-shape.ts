import type { Metadata } from '@grpc/grpc-js'
import type { ModelInferRequest } from './grpc-messages.ts'

/** The two answers that the peers send on ModelStreamInfer (spec 2.4). */
export type StreamShape = 'mlserver' | 'triton'

/** Metadata `x-stream-shape` says it, then what only Triton's clients send, then the listener. */
export function streamShape(
  metadata: Metadata,
  first: ModelInferRequest,
  listener: StreamShape,
): StreamShape {
  const [said] = metadata.get('x-stream-shape')
  if (said === 'triton') return 'triton'
  if (said === 'oip' || said === 'mlserver') return 'mlserver'
  if (metadata.get(GRPC_ERROR).length > 0) return 'triton'
  const triton = Object.keys(first.parameters ?? {}).some((name) => name.startsWith('triton_'))
  return triton ? 'triton' : listener
}

/** Metadata of Triton's clients: the first error ends the stream. */
export const GRPC_ERROR = 'triton_grpc_error'
