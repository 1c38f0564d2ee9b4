import type { Datatype } from '../../common/tensors/datatypes.ts'
import type { TensorData } from '../../common/tensors/typed.ts'
import type { Context } from '../handler.ts'

export type { Datatype, TensorData }

/** One input as a handler gets it. */
export interface InputTensor {
  readonly name: string
  readonly datatype: Datatype
  readonly shape: readonly number[]
  /**
   * Row-major: a typed array of the datatype (BigInt64Array for INT64, Uint8Array of 0 and 1 for BOOL, for FP16 and BF16 a Uint16Array
   * of their bits, see `halfToFloats`), for BYTES one Buffer per element.
   */
  readonly data: TensorData
  readonly parameters: Readonly<Record<string, unknown>>
}

/** A request of the Open Inference Protocol as a handler gets it. Headers stand in the context. */
export interface InferenceRequest {
  /** As the client sent it; absent: it sent none. */
  readonly id?: string
  readonly parameters: Readonly<Record<string, unknown>>
  readonly inputs: readonly InputTensor[]
  /** The outputs that the client named; absent: all. The server leaves others out by itself. */
  readonly outputs?: readonly {
    readonly name: string
    readonly parameters?: Readonly<Record<string, unknown>>
  }[]
}

/** One output as a handler gives it. */
export interface OutputTensor {
  name: string
  datatype: Datatype
  /** Whole numbers; their product is the number of elements. */
  shape: readonly number[]
  /** As `InputTensor.data`, or a list of numbers, bigints, booleans, texts or bytes, flat or nested. */
  data: TensorData | readonly unknown[]
  parameters?: Readonly<Record<string, unknown>>
}

/** What is left out of id, model_name and model_version is the request's. */
export interface InferenceResponse {
  id?: string
  model_name?: string
  model_version?: string
  parameters?: Readonly<Record<string, unknown>>
  outputs: readonly OutputTensor[]
}

/**
 * A handler that speaks the Open Inference Protocol itself: `predict`, `predictStream` or both. Each also serves what the other is missing
 * for: without `predict` a unary request gets the one response of the stream, or its texts joined; without `predictStream` each payload of a
 * stream is predicted by itself.
 */
export interface InferenceHandler {
  initialize?(context: Context): void | Promise<void>
  /** With max_batch_size several requests of the same form may come as one: their rows one after the other. */
  predict?(request: InferenceRequest, context: Context): InferenceResponse | Promise<InferenceResponse>
  /**
   * Payloads are the messages of the client, mostly one; a client of ModelStreamInfer may send more while it reads. Each response leaves
   * at once. `payloads` throws, and `context.signal` aborts, when nobody waits any more.
   */
  predictStream?(
    payloads: AsyncIterable<InferenceRequest>,
    context: Context,
  ): AsyncIterable<InferenceResponse>
  describe?(context: Context): Record<string, unknown> | Promise<Record<string, unknown>>
  shutdown?(): void | Promise<void>
}
