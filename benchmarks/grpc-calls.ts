import { loadSync, type MethodDefinition } from '@grpc/proto-loader'
import { ECHO_BODY, ECHO } from './ceilings/workload.ts'
import { PROTO } from './targets/ceilings.ts'

/** The two measured calls as raw HTTP/2: path, and request message with its five-byte prefix. */

const SERVICE = 'org.pytorch.serve.grpc.inference.InferenceAPIsService'
type Methods = Record<'Predictions' | 'StreamPredictions', MethodDefinition<object, object>>

const methods = (): Methods => loadSync(PROTO, { keepCase: true })[SERVICE] as unknown as Methods

export interface GrpcCall {
  path: string
  message: Buffer
}

export function unaryCall(): GrpcCall {
  return call('Predictions', ECHO, ECHO_BODY)
}

export function streamCall(model: string, data: string): GrpcCall {
  return call('StreamPredictions', model, data)
}

function call(method: keyof Methods, model: string, data: string): GrpcCall {
  const { path, requestSerialize } = methods()[method]
  return {
    path,
    message: prefixed(requestSerialize({ model_name: model, input: { data: Buffer.from(data) } })),
  }
}

/** A message with its five-byte prefix. */
export function prefixed(message: Buffer): Buffer {
  const prefix = Buffer.alloc(5)
  prefix.writeUInt32BE(message.length, 1)
  return Buffer.concat([prefix, message])
}
