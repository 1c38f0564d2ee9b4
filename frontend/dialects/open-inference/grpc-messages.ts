/**
 * The messages of proto/infer_messages.proto as proto-loader decodes them: 64-bit integers are texts, absent
 * lists empty.
 */

export interface InferParameter {
  bool_param?: boolean
  int64_param?: string
  string_param?: string
  double_param?: number
  uint64_param?: string
}

export type ParameterMap = Record<string, InferParameter>

/** A tensor as infer_messages.proto has it. */
export interface TensorMessage {
  name?: string
  datatype?: string
  shape: (string | number)[]
  parameters?: ParameterMap
  /** The bytes of an InferTensorContents; see grpc-contents.ts and grpc-contents-writer.ts. */
  contents?: Buffer
}

export interface ModelInferRequest {
  model_name?: string
  model_version?: string
  id?: string
  parameters?: ParameterMap
  inputs: TensorMessage[]
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
