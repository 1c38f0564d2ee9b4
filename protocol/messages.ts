import type { WireError } from '../common/errors.ts'
import type { HandlerMethod, NativeMethod } from '../common/handler-methods.ts'
import type { InputPart } from '../common/input-part.ts'

export type { InputPart }

/**
 * What frontend and worker say to each other: two closed unions, told apart by `type`. Each message travels as one
 * msgpack map in one frame (frame.ts). Requests are numbered per connection (`id`); answers are matched by that number,
 * never by their place in time.
 */

/** Raised whenever a message changes in a way that an older peer cannot read. */
export const PROTOCOL_VERSION = 5

/** `ts_stream_next` as TorchServe writes it: "true" = more follows, "false" = this was the last of a stream. */
export type StreamNext = 'true' | 'false'

/** One request of a batch. */
export interface PredictRequest {
  /** The method of the handler that it wants. Nothing else says so: headers and parts are the client's. */
  method: HandlerMethod
  /** Correlation number, a uint32, unique among the open requests of its connection. */
  id: number
  /** The id that users see: x-request-id, `context.requestIds`. */
  requestId: string
  /** Names and values, see header-lines.ts. */
  headers: string
  parts: InputPart[]
  /** Bytes that may be sent before credit comes back. */
  window: number
  /** Milliseconds since the epoch after which nobody waits for the answer. */
  deadline?: number
  /** Further inputs follow, each in an `input` message. */
  moreInputs?: boolean
}

/** Everything that a worker must know to load its handler. */
export interface LoadMessage {
  type: 'load'
  modelName: string
  modelVersion: string
  /** Absolute folder with the model's files: `context.properties.modelDir`. */
  modelDir: string
  /** Absolute path of the handler's JavaScript module. */
  handlerPath: string
  /** Export to use; absent: the module decides (default export, `handle`, or its only class). */
  handlerEntry?: string
  manifest: Record<string, unknown>
  /** The whole model-config.yaml. */
  modelConfig: Record<string, unknown>
  batchSize: number
  /** -1 on CPU. */
  gpuId: number
  serverVersion: string
  /** Largest body of one response, in bytes (max_response_size). */
  maxResponseBytes: number
  /** Bytes that a handler may send beyond its window before SEND_OVERFLOW. */
  maxUnsentBytes: number
  /** Whether text and JSON parts are decoded before the handler sees them (decode_input_request). */
  decodeInput: boolean
  /** The handler is called step by step with all running requests. Default false. */
  continuousBatching?: boolean
  /** Names of the headers that speak of sequences. Default: TorchServe's. */
  sequenceHeaders?: { id: string; start: string; end: string }
  /** The metrics that somebody wants; others need not be sent. Absent: all that the handler reports, each value at once. */
  metrics?: WantedMetrics
  /** TorchServe's limit_max_image_pixels, for handlers that decode images. Absent: true. */
  limitMaxImagePixels?: boolean
  /** TorchServe's service_envelope. Absent: none. */
  envelope?: string
}

/** What metrics.yaml declares for handlers (spec 8.3). */
export interface WantedMetrics {
  declared: MetricSpec[]
  /** Whether metrics that are not declared are wanted too (model_metrics_auto_detect). */
  others: boolean
}

/** A batch. Its requests may want different methods: those that want the same one share a call of the handler. */
export interface PredictMessage {
  type: 'predict'
  requests: PredictRequest[]
}

/** Why work is no longer wanted; becomes the reason of the handler's AbortSignal. */
export type CancelReason = 'client left' | 'deadline' | 'timeout' | 'shutdown' | 'failed'

export interface CancelMessage {
  type: 'cancel'
  ids: number[]
  reason: CancelReason
}

/** The reader took `bytes` more (each item counts its body plus ITEM_OVERHEAD_BYTES). */
export interface CreditMessage {
  type: 'credit'
  id: number
  bytes: number
}

/** A further input of a request with `moreInputs`; the worker says `taken` when its handler has asked for it. */
export interface InputMessage {
  type: 'input'
  id: number
  /** Absent: none follows, the last one came before. */
  data?: Uint8Array
}

export interface PingMessage {
  type: 'ping'
  nonce: number
}

/** Finish what runs, then leave. */
export interface UnloadMessage {
  type: 'unload'
}

export type ToWorker =
  LoadMessage | PredictMessage | InputMessage | CancelMessage | CreditMessage | PingMessage | UnloadMessage

/** The worker's hello, first message on every connection. */
export interface ReadyMessage {
  type: 'ready'
  protocolVersion: number
  pid: number
  rank: number
  runtime: string
}

export interface LoadedMessage {
  type: 'loaded'
  /** Absent: loaded. Present: why not; the worker leaves after it. */
  error?: WireError
  /** The methods that the handler has beyond `handle`, `explain` and `describe`. Absent: none. */
  methods?: readonly NativeMethod[]
}

/**
 * One response of one request. Without `ts_stream_next` it is the whole answer; with "true" an intermediate one; with
 * "false" the last of a stream. Status, content type and headers count on the first response only; the
 * last one of a stream may have headers that end sequences.
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

/** The request ended with an error. Exactly one final response or failure is sent for every request by rank 0. */
export interface FailureMessage {
  type: 'failure'
  id: number
  error: WireError
}

/** The handler has asked for this many `input` messages: as many more may be sent. */
export interface TakenMessage {
  type: 'taken'
  id: number
  inputs: number
}

/** From ranks other than 0: these requests have run to their end here. */
export interface FinishedMessage {
  type: 'finished'
  ids: number[]
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

export interface LogMessage {
  type: 'log'
  level: LogLevel
  message: string
  requestId?: string
}

/** What a value does: it is added to a counter, set as the state of a gauge, counted in a bucket of a histogram. */
export type MetricKind = 'counter' | 'gauge' | 'histogram'

/** What a metric is, apart from its values. */
export interface MetricSpec {
  name: string
  kind: MetricKind
  unit: string
  /** Names of its dimensions, in the order of their values. */
  dimensions: string[]
}

/** Values of one metric with the same dimensions, oldest first: to be added to a counter, the state of a gauge. */
export interface MetricMessage {
  type: 'metric'
  name: string
  kind: MetricKind
  unit: string
  dimensions: Record<string, string>
  values: number[]
  /** One for each value: the ids of its requests, divided by commas; empty: none. */
  requestIds: string[]
}

export interface PongMessage {
  type: 'pong'
  nonce: number
}

export type FromWorker =
  | ReadyMessage
  | LoadedMessage
  | ResponseMessage
  | FailureMessage
  | FinishedMessage
  | TakenMessage
  | LogMessage
  | MetricMessage
  | PongMessage

/** What an item costs its window beyond its body, so that many tiny items are bounded too. */
export const ITEM_OVERHEAD_BYTES = 64

/** What one response takes from its request's window. */
export function itemCost(bodyBytes: number): number {
  return bodyBytes + ITEM_OVERHEAD_BYTES
}
