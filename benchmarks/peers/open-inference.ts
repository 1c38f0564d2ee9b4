import { fileURLToPath } from 'node:url'
import { loadSync, type MethodDefinition } from '@grpc/proto-loader'
import { prefixed, type GrpcCall } from '../grpc-calls.ts'

/** Requests of MLServer and Triton: one tensor of one text. */

const PROTOS = fileURLToPath(new URL('../../proto', import.meta.url))
type Methods = Record<'ModelInfer' | 'ModelStreamInfer', MethodDefinition<object, object>>

const TENSOR = { name: 'text', datatype: 'BYTES', shape: [1, 1] }

export function inferJson(text: string): Buffer {
  return Buffer.from(JSON.stringify({ inputs: [{ ...TENSOR, data: [text] }] }))
}

/** The text as the element of a binary tensor: its length, then its bytes. */
export function element(text: string): Buffer {
  const length = Buffer.alloc(4)
  length.writeUInt32LE(Buffer.byteLength(text))
  return Buffer.concat([length, Buffer.from(text)])
}

export function inferCall(method: keyof Methods, model: string, text: string): GrpcCall {
  const service = loadSync('inference/mlserver.proto', { keepCase: true, includeDirs: [PROTOS] })
  const { path, requestSerialize } = (service['inference.GRPCInferenceService'] as unknown as Methods)[method]
  const message = { model_name: model, inputs: [TENSOR], raw_input_contents: [element(text)] }
  return { path, message: prefixed(requestSerialize(message)) }
}
