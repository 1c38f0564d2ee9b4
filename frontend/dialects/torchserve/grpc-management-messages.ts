/** The messages of proto/management.proto as proto-loader decodes them: absent fields are undefined. */

export interface DescribeModelRequest {
  model_name?: string
  model_version?: string
  customized?: boolean
}

export interface ListModelsRequest {
  limit?: number
  next_page_token?: number
}

export interface RegisterModelRequest {
  batch_size?: number
  handler?: string
  initial_workers?: number
  max_batch_delay?: number
  model_name?: string
  response_timeout?: number
  runtime?: string
  synchronous?: boolean
  url?: string
  s3_sse_kms?: boolean
  startup_timeout?: number
  sha256?: string
}

export interface ScaleWorkerRequest {
  model_name?: string
  model_version?: string
  max_worker?: number
  min_worker?: number
  number_gpu?: number
  synchronous?: boolean
  timeout?: number
}

export interface SetDefaultRequest {
  model_name?: string
  model_version?: string
}

export interface UnregisterModelRequest {
  model_name?: string
  model_version?: string
}

export interface ManagementResponse {
  msg: string
}
