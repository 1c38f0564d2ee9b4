/** The messages of proto/open_inference_grpc.proto as proto-loader decodes them: 64-bit integers are texts, absent lists empty. */

export interface ModelRequest {
  name?: string
  version?: string
}

export interface InferParameter {
  bool_param?: boolean
  int64_param?: string
  string_param?: string
}

export type Parameters = Record<string, InferParameter>

export interface InferTensorContents {
  bool_contents?: boolean[]
  int_contents?: number[]
  int64_contents?: string[]
  uint_contents?: number[]
  uint64_contents?: string[]
  fp32_contents?: number[]
  fp64_contents?: number[]
  bytes_contents?: Buffer[]
}

export interface InferInputTensor {
  name?: string
  datatype?: string
  shape: string[]
  parameters?: Parameters
  contents?: InferTensorContents
}

export interface ModelInferRequest {
  model_name?: string
  model_version?: string
  id?: string
  parameters?: Parameters
  inputs: InferInputTensor[]
  outputs: { name?: string; parameters?: Parameters }[]
  raw_input_contents: Buffer[]
}

export interface InferOutputTensor {
  name: string
  datatype: string
  shape: (string | number)[]
  parameters: Parameters
  contents: InferTensorContents
}

export interface ModelInferResponse {
  model_name: string
  model_version: string
  id: string
  parameters: Parameters
  outputs: InferOutputTensor[]
}
