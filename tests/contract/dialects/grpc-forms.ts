import { EventEmitter } from 'node:events'
import type { CallOptions, Client, ServiceError } from '@grpc/grpc-js'
import type { Answering, GrpcForm } from './grpc.ts'

interface InferMessage {
  outputs?: { contents?: { bytes_contents?: Buffer[] } }[]
  raw_output_contents?: Buffer[]
}

type Unary = (
  request: object,
  options: CallOptions,
  done: (error: ServiceError | null, answer: unknown) => void,
) => { cancel(): void }
type Sending = Answering & { write(message: object): void; end(): void }
type Methods = Client & {
  Predictions: Unary
  ModelInfer: Unary
  StreamPredictions(request: object, options: CallOptions): Answering
  StreamPredictions2(options: CallOptions): Sending
  ModelStreamInfer(options: CallOptions): Sending
}

const predictionsRequest = (model: string, input: string) => ({
  model_name: model,
  input: { data: Buffer.from(input) },
})

function inferRequest(model: string, input: string): object {
  const contents = { bytes_contents: [Buffer.from(input)] }
  return {
    model_name: model,
    id: 'contract',
    inputs: [{ name: 'data', datatype: 'BYTES', shape: [1], contents }],
  }
}

function inferText(message: unknown): string | undefined {
  const { outputs = [], raw_output_contents: raw = [] } = message as InferMessage
  const bytes = outputs[0]?.contents?.bytes_contents?.[0] ?? raw[0]?.subarray(4)
  return bytes?.toString() || undefined
}

function predictionText(message: unknown): string | undefined {
  const { prediction } = message as { prediction?: Buffer }
  return prediction?.toString() || undefined
}

/** A unary call as a stream of one message. */
function whole(client: Client, method: Unary, request: object, options: CallOptions): Answering {
  const answer = new EventEmitter()
  const call = method.call(client, request, options, (error, message) => {
    if (error !== null) answer.emit('error', error)
    else {
      answer.emit('data', message)
      answer.emit('end')
    }
  })
  return Object.assign(answer, {
    pause: () => undefined,
    resume: () => undefined,
    cancel: () => call.cancel(),
  })
}

/** The one request of a call that could have many. */
function only(call: Sending, request: object): Answering {
  call.write(request)
  call.end()
  return call
}

const TORCHSERVE = {
  file: 'inference.proto',
  service: 'org.pytorch.serve.grpc.inference.InferenceAPIsService',
  // As in TorchServe.
  notFound: 'INTERNAL',
} as const

export const STREAM_PREDICTIONS: GrpcForm = {
  ...TORCHSERVE,
  name: 'TorchServe StreamPredictions',
  call: (client, model, input, options) =>
    (client as Methods).StreamPredictions(predictionsRequest(model, input), options),
  textOf: predictionText,
}

/** Its failures are messages, so the call continues for other sequences. */
export const STREAM_PREDICTIONS2: GrpcForm = {
  ...TORCHSERVE,
  name: 'TorchServe StreamPredictions2',
  notFound: 'error_message',
  call: (client, model, input, options) => {
    const request = { ...predictionsRequest(model, input), sequence_id: 'contract' }
    return only((client as Methods).StreamPredictions2(options), request)
  },
  textOf: (message) => {
    const { status } = message as { status?: { code: number; message: string } }
    if (status?.code) throw new Error(`${status.code}: ${status.message}`)
    return predictionText(message)
  },
}

export const PREDICTIONS: GrpcForm = {
  ...TORCHSERVE,
  name: 'TorchServe Predictions',
  whole: true,
  call: (client, model, input, options) =>
    whole(client, (client as Methods).Predictions, predictionsRequest(model, input), options),
  textOf: predictionText,
}

const SERVICE = 'inference.GRPCInferenceService'
const MLSERVER = { file: 'inference/mlserver.proto', service: SERVICE } as const
const TRITON = { file: 'inference/triton.proto', service: SERVICE } as const

function modelStreamInfer(client: Client, model: string, input: string, options: CallOptions): Answering {
  return only((client as Methods).ModelStreamInfer(options), inferRequest(model, input))
}

export const MLSERVER_STREAM: GrpcForm = {
  ...MLSERVER,
  name: 'V2 ModelStreamInfer (MLServer)',
  notFound: 'NOT_FOUND',
  call: modelStreamInfer,
  textOf: inferText,
}

export const TRITON_STREAM: GrpcForm = {
  ...TRITON,
  name: 'V2 ModelStreamInfer (Triton)',
  notFound: 'error_message',
  call: modelStreamInfer,
  textOf: (message) => {
    const { error_message: error, infer_response: response } = message as {
      error_message?: string
      infer_response?: InferMessage
    }
    if (error) throw new Error(error)
    return inferText(response ?? {})
  },
}

const modelInfer = (form: typeof MLSERVER | typeof TRITON, peer: string): GrpcForm => ({
  ...form,
  name: `V2 ModelInfer (${peer})`,
  whole: true,
  notFound: 'NOT_FOUND',
  call: (client, model, input, options) =>
    whole(client, (client as Methods).ModelInfer, inferRequest(model, input), options),
  textOf: inferText,
})

export const MLSERVER_INFER = modelInfer(MLSERVER, 'MLServer')
export const TRITON_INFER = modelInfer(TRITON, 'Triton')

/** The same calls in TorchServe's package for the protocol. */
export const TORCHSERVE_INFER: GrpcForm = {
  ...MLSERVER_INFER,
  name: 'V2 ModelInfer (TorchServe)',
  notFound: 'INTERNAL',
  file: 'open_inference_grpc.proto',
  service: 'org.pytorch.serve.grpc.openinference.GRPCInferenceService',
}
