import type { Datatype } from '../../common/tensors/datatypes.ts'
import type { TensorData } from '../../common/tensors/typed.ts'
import type { Context } from '../handler.ts'

export type { Datatype, TensorData }

/** One input of a request. */
export interface InputTensor {
  readonly name: string
  readonly datatype: Datatype
  readonly shape: readonly number[]
  /**
   * The elements in row-major order, as the typed array of the datatype: for example Float32Array for FP32,
   * BigInt64Array for INT64, Uint8Array of 0 and 1 for BOOL. FP16 and BF16 are a Uint16Array of bit patterns
   * (see `halfToFloats` and `brainToFloats`). BYTES has one Buffer per element.
   */
  readonly data: TensorData
  readonly parameters: Readonly<Record<string, unknown>>
}

/**
 * A request of the Open Inference Protocol as a handler gets it. Read its headers with
 * `context.requestHeader(0, name)`.
 */
export interface InferenceRequest {
  /** The client's id; absent if it sent none. */
  readonly id?: string
  readonly parameters: Readonly<Record<string, unknown>>
  readonly inputs: readonly InputTensor[]
  /** The outputs that the client requested; absent: all. The server drops outputs that were not requested. */
  readonly outputs?: readonly {
    readonly name: string
    readonly parameters?: Readonly<Record<string, unknown>>
  }[]
}

/** One output of a response. */
export interface OutputTensor {
  name: string
  datatype: Datatype
  /** Integers, 0 or greater. Their product must be the number of elements. */
  shape: readonly number[]
  /**
   * As `InputTensor.data`, or a list of numbers, bigints, booleans, strings or bytes, flat or nested
   * according to `shape`.
   */
  data: TensorData | readonly unknown[]
  parameters?: Readonly<Record<string, unknown>>
}

/**
 * A response of the Open Inference Protocol. Default of `id`, `model_name` and `model_version`: those of the
 * request.
 */
export interface InferenceResponse {
  id?: string
  model_name?: string
  model_version?: string
  parameters?: Readonly<Record<string, unknown>>
  outputs: readonly OutputTensor[]
}

/**
 * A handler of the Open Inference Protocol with `predict`, `predictStream` or both. Either method serves both
 * kinds of requests. Without `predict`, a unary request gets the only response of the stream, or its texts
 * joined. Without `predictStream`, each message of a stream is predicted by itself.
 */
export interface InferenceHandler {
  initialize?(context: Context): void | Promise<void>
  /**
   * Answers one request. With `max_batch_size` the server may merge several requests with the same form into
   * one by concatenating their rows; return as many rows.
   */
  predict?(request: InferenceRequest, context: Context): InferenceResponse | Promise<InferenceResponse>
  /**
   * Answers a stream. `payloads` are the client's messages: usually one, but a client of ModelStreamInfer may
   * send more while it reads. Each response is sent at once. When the request is cancelled, `payloads` throws
   * and `context.signal` aborts.
   */
  predictStream?(
    payloads: AsyncIterable<InferenceRequest>,
    context: Context,
  ): AsyncIterable<InferenceResponse>
  describe?(context: Context): Record<string, unknown> | Promise<Record<string, unknown>>
  shutdown?(): void | Promise<void>
}
