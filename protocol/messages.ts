import type { WireError } from '../common/errors.ts'
import type { HandlerMethod, InputPart, ListedMethod } from '../common/handler-methods.ts'

/**
 * The messages of the worker protocol: two closed unions, discriminated by `type`. Each message is one frame
 * (codec.ts). Requests have a number per connection (`id`), and responses refer to that number, never to an
 * order in time.
 */

/** Raise this number for every change that an older peer cannot read. */
export const PROTOCOL_VERSION = 9

/** TorchServe's `ts_stream_next`: "true" = more items follow, "false" = this is the last item of a stream. */
export type StreamNext = 'true' | 'false'

/** One request of a batch. */
export interface PredictRequest {
  /** The requested method of the handler. Only this field decides; headers and parts are the client's. */
  method: HandlerMethod
  /** Correlation number, a uint32, unique among the open requests of a connection. */
  id: number
  /** The request id that users see: x-request-id, `context.requestIds`. */
  requestId: string
  /** Names and values; see common/headers.ts. */
  headers: string
  parts: InputPart[]
  /** The window in bytes: what the worker may send before it gets credit. */
  window: number
  /** The client's deadline in milliseconds since the epoch. */
  deadline?: number
  /** Further inputs follow, each in an `input` message. */
  moreInputs?: boolean
}

/** Everything that a worker needs to load its handler. */
export interface LoadMessage {
  type: 'load'
  modelName: string
  modelVersion: string
  /** Absolute path of the model's files: `context.properties.modelDir`. */
  modelDir: string
  /** Absolute path of the handler's JavaScript module. */
  handlerPath: string
  /** The export to use. Default: the module's default export, `handle`, or its only class. */
  handlerEntry?: string
  /** Absolute paths of node_modules folders in which no package is found. Absent: none. */
  closedModules?: string[]
  manifest: Record<string, unknown>
  /** The complete model-config.yaml. */
  modelConfig: Record<string, unknown>
  batchSize: number
  /** GPU number; -1 on CPU. */
  gpuId: number
  serverVersion: string
  /** Maximum body size of one response in bytes (max_response_size). */
  maxResponseBytes: number
  /** Bytes that a handler may queue beyond the window before it gets SEND_OVERFLOW. */
  maxUnsentBytes: number
  /** Whether text and JSON parts are decoded for the handler (decode_input_request). */
  decodeInput: boolean
  /** max_request_elements of the server. Absent: 250,000. */
  maxJsonElements?: number
  /** Continuous batching: the handler is called step by step with all running requests. Default false. */
  continuousBatching?: boolean
  /** Names of the sequence headers. Default: TorchServe's. */
  sequenceHeaders?: { id: string; start: string; end: string }
  /**
   * Names of the metrics that the frontend needs; others need not be sent. Absent: send all, each value at
   * once.
   */
  metrics?: WantedMetrics
  /** limit_max_image_pixels of the server, for handlers that decode images. Absent: true. */
  limitMaxImagePixels?: boolean
  /** service_envelope of the server. Absent: none. */
  envelope?: string
}

/** The model metrics that metrics.yaml declares. */
export interface WantedMetrics {
  declared: MetricSpec[]
  /** Whether undeclared metrics are accepted too (model_metrics_auto_detect). */
  others: boolean
}

/**
 * A batch. Its requests may ask for different methods; those with the same method share a call of the
 * handler.
 */
export interface PredictMessage {
  type: 'predict'
  requests: PredictRequest[]
  /** The batch begins when everything before it has ended; until then it can be withdrawn. Default false. */
  after?: boolean
}

/**
 * The frontend wants batches back that have not begun. The worker names those that it gives back in
 * `withdrawn`; a batch that has begun stays.
 */
export interface WithdrawMessage {
  type: 'withdraw'
  ids: number[]
}

/** Why a request was cancelled; becomes the reason of the handler's AbortSignal. */
export const CANCEL_REASONS = [
  'client left',
  'deadline',
  'timeout',
  'shutdown',
  'failed',
  'operator',
] as const

export type CancelReason = (typeof CANCEL_REASONS)[number]

export type ToWorker =
  | LoadMessage
  | PredictMessage
  | WithdrawMessage
  /**
   * A further input of a request with `moreInputs`; `data` absent: the previous one was the last. The worker
   * sends `taken` when its handler has asked for an input.
   */
  | { type: 'input'; id: number; data?: Uint8Array }
  | { type: 'cancel'; id: number; reason: CancelReason }
  /** Credit (CreditStream): the client has read this many bytes of the response. */
  | { type: 'credit'; id: number; bytes: number }
  /** A sequence of which the worker got requests has ended. Later ones with the same id belong to another. */
  | { type: 'sequenceEnd'; sequence: string }
  | { type: 'ping'; nonce: number }
  /** Finish running requests, then exit. */
  | { type: 'unload' }

/** The first message of the worker on every connection. */
export interface ReadyMessage {
  type: 'ready'
  protocolVersion: number
  pid: number
  rank: number
  runtime: string
}

export interface LoadedMessage {
  type: 'loaded'
  /** Absent: the handler is loaded. Present: why not; the worker exits after this message. */
  error?: WireError
  /** The handler's own methods. Absent: none. */
  methods?: readonly ListedMethod[]
}

/**
 * One response of one request. `ts_stream_next` absent: the unary response; "true": an item; "false": the
 * last item of a stream. Status, content type and headers count on the first response only, except that the
 * last one may have headers that end sequences.
 */
export interface ResponseMessage {
  type: 'response'
  id: number
  body: Uint8Array
  ts_stream_next?: StreamNext
  contentType?: string
  status?: number
  reason?: string
  headers?: Record<string, string>
}

/** All requests of the batches that the worker gives back. The handler never sees them. */
export interface WithdrawnMessage {
  type: 'withdrawn'
  ids: number[]
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

export interface LogMessage {
  type: 'log'
  level: LogLevel
  message: string
  requestId?: string
}

/** How values are combined: added to a counter, set as a gauge, or counted in a histogram bucket. */
export type MetricKind = 'counter' | 'gauge' | 'histogram'

/** A metric without its values. */
export interface MetricSpec {
  name: string
  kind: MetricKind
  unit: string
  /** Names of the dimensions, in the order of their values. */
  dimensions: string[]
}

/** Values of one metric with the same dimensions, oldest first. */
export interface MetricMessage {
  type: 'metric'
  name: string
  kind: MetricKind
  unit: string
  dimensions: Record<string, string>
  values: number[]
  /** Per value: the ids of its requests, separated by commas; empty: none. */
  requestIds: string[]
}

export type FromWorker =
  | ReadyMessage
  | LoadedMessage
  | ResponseMessage
  | WithdrawnMessage
  /** The request failed. Rank 0 sends exactly one final response or failure for every request. */
  | { type: 'failure'; id: number; error: WireError }
  /** From ranks other than 0: the request has ended on this rank. */
  | { type: 'finished'; id: number }
  /** The handler has asked for this many inputs; the frontend may send as many more. */
  | { type: 'taken'; id: number; inputs: number }
  /** The handler works on a request that it has not answered: its time limits begin anew. */
  | { type: 'alive'; id: number }
  | LogMessage
  | MetricMessage
  | { type: 'pong'; nonce: number }
