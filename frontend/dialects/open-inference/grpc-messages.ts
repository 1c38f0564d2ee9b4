/**
 * The messages of proto/inference as proto-loader decodes them: 64-bit integers are texts, absent lists
 * empty.
 */

export interface InferParameter {
  bool_param?: boolean
  int64_param?: string
  string_param?: string
  double_param?: number
  uint64_param?: string
}

export type ParameterMap = Record<string, InferParameter>

export interface TensorContents {
  bool_contents?: boolean[]
  int_contents?: number[]
  int64_contents?: string[]
  uint_contents?: number[]
  uint64_contents?: string[]
  fp32_contents?: number[]
  fp64_contents?: number[]
  bytes_contents?: Buffer[]
}

export interface TensorMessage {
  name?: string
  datatype?: string
  shape: (string | number)[]
  parameters?: ParameterMap
  contents?: TensorContents
}

/** An input as infer_request.proto has it. */
export interface InputMessage extends Omit<TensorMessage, 'contents'> {
  /** The bytes of an InferTensorContents; see grpc-contents.ts. */
  contents?: Buffer
}

export interface ModelInferRequest {
  model_name?: string
  model_version?: string
  id?: string
  parameters?: ParameterMap
  inputs: InputMessage[]
  outputs: { name?: string; parameters?: ParameterMap }[]
  raw_input_contents: Buffer[]
}

export interface ModelInferResponse {
  model_name: string
  model_version: string
  id: string
  parameters: ParameterMap
  outputs: TensorMessage[]
  raw_output_contents: Uint8Array[]
}

/** Triton's. */
export interface ModelStreamInferResponse {
  error_message?: string
  infer_response: ModelInferResponse
}

export interface ModelRequest {
  name?: string
  version?: string
}

/** A load or unload; KServe's clients write the name into the first field. */
export interface RepositoryRequest {
  repository_name?: string
  model_name?: string
}
