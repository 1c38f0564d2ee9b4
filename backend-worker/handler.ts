import type { MetricKind } from '../protocol/messages.ts'
import type {
  ChatChunk,
  ChatCompletionRequest,
  Completion,
  CompletionChunk,
  CompletionRequest,
  EmbeddingsRequest,
  EmbeddingsResult,
} from '../common/openai/types.ts'

export type { MetricKind }

/**
 * The API for handler authors: what a handler gets and what it may return.
 *
 * A handler module exports one of these:
 * - a class with `handle`, as its default export or its only class; it may extend BaseHandler,
 * - a function `handle(requests, context)`, as its default export or under this name; it may be `async *`,
 * - a class with `predict` or `predictStream`, or functions with these names: see InferenceHandler.
 */

/**
 * One request of a batch: part name -> value. JSON parts are parsed, text parts are strings, and all other
 * parts are Buffers.
 */
export type HandlerRequest = Record<string, unknown>

/**
 * One item of a response. Bytes (any typed array) are sent as they are, strings as UTF-8, and everything else
 * as JSON (indented by two spaces, as in TorchServe). An Error fails its own request only. In an intermediate
 * response `undefined` sends nothing to that request, but its time limits begin anew; as the last item it is
 * an empty body.
 */
export type HandlerResponse = unknown

/** Request ids by index in the batch. Arrays fit. Leave indexes out to address a part of the batch. */
export type RequestIds = Readonly<Record<number, string>>

/** Writes to the frontend's model log. With `requestIndex` the line contains the id of that request. */
export interface Logger {
  debug(message: string, requestIndex?: number): void
  info(message: string, requestIndex?: number): void
  warn(message: string, requestIndex?: number): void
  error(message: string, requestIndex?: number): void
}

type Dimensions = Readonly<Record<string, string>>

/** A metric of the worker's cache. Its values have exactly the given dimensions; the server adds none. */
export interface Metric {
  readonly name: string
  readonly unit: string
  readonly kind: MetricKind
  readonly dimensionNames: readonly string[]
  /**
   * Reports a value. `dimensionValues` has one value per dimension name; `requestId` appears in the log file.
   */
  addOrUpdate(value: number, dimensionValues?: readonly string[], requestId?: string): void
  /** Reports a value with the given dimensions instead of the metric's own. */
  update(value: number, requestId?: string, dimensions?: Dimensions): void
}

/**
 * Reports metrics. A metric appears on the metrics page and in the log files if metrics.yaml declares it, or
 * with `model_metrics_auto_detect=true`. The server adds the dimensions `ModelName` and `Level` (`Model`). A
 * value counts for all requests of the batch, or with `requestIndex` for that request only. An invalid value
 * (a negative counter, not a number) is logged and ignored: it never fails a request.
 */
export interface HandlerMetrics {
  /** Adds `value` (0 or greater) to a counter. */
  addCounter(name: string, value: number, dimensions?: Dimensions, requestIndex?: number): void
  /** Reports a duration. `unit` is `ms` (default) or `s`; `kind` is `gauge` by default. */
  addTime(
    name: string,
    value: number,
    unit?: 'ms' | 's',
    dimensions?: Dimensions,
    kind?: MetricKind,
    requestIndex?: number,
  ): void
  /** Reports a size. `unit` is `B`, `kB`, `MB` (default) or `GB`; `kind` is `gauge` by default. */
  addSize(
    name: string,
    value: number,
    unit?: 'B' | 'kB' | 'MB' | 'GB',
    dimensions?: Dimensions,
    kind?: MetricKind,
    requestIndex?: number,
  ): void
  /** Reports a percentage from 0 to 100. `kind` is `gauge` by default. */
  addPercent(
    name: string,
    value: number,
    dimensions?: Dimensions,
    kind?: MetricKind,
    requestIndex?: number,
  ): void
  /** Counts errors. The dimension `Level` is `Error`, and the value belongs to no request. */
  addError(name: string, value: number, dimensions?: Dimensions): void
  /** Reports any metric. `kind` is `counter` by default. */
  addMetric(
    name: string,
    value: number,
    unit: string,
    dimensions?: Dimensions,
    kind?: MetricKind,
    requestIndex?: number,
  ): void
  /**
   * Adds a metric to the worker's cache and replaces one with the same name and kind. Reports no value.
   * `kind` is `counter` by default; `dimensionNames` is empty by default.
   */
  addMetricToCache(name: string, unit: string, dimensionNames?: readonly string[], kind?: MetricKind): Metric
  /**
   * Returns a metric of the cache; undefined if there is none. The cache contains the model metrics of
   * metrics.yaml. `kind` is `counter` by default.
   */
  getMetric(name: string, kind?: MetricKind): Metric | undefined
}

/** Properties that stay the same for the life of a worker. */
export interface ContextProperties {
  /** Absolute path of the folder with the model's files. */
  readonly modelDir: string
  /** Maximum number of requests per batch, as registered. */
  readonly batchSize: number
  /**
   * The server's number of this worker's GPU (of the first, if it has several); -1 on CPU. A Node.js worker
   * sees only its own GPUs: use `device`.
   */
  readonly gpuId: number
  /**
   * `cpu`, or `cuda:<n>`, where n is the GPU's number within this process: 0, or the local rank in a rank
   * group.
   */
  readonly device: string
  /** The server's key limit_max_image_pixels: false if a handler may decode images of any size. */
  readonly limitMaxImagePixels: boolean
  /** Number of this process in its rank group, from 0. Rank 0 sends the responses. 0 without a rank group. */
  readonly rank: number
  /** The rank on this machine. */
  readonly localRank: number
  /** Number of ranks of the worker; 1 without a rank group. */
  readonly worldSize: number
  readonly serverName: string
  readonly serverVersion: string
}

/** Names of the sequence headers (docs/batching.md). */
export interface SequenceHeaders {
  readonly id: string
  readonly start: string
  readonly end: string
}

/**
 * Continuous batching: decides whether a request ends with this item. `true` ends it. `false` makes the item
 * an intermediate response, and the request takes part in the next step. `undefined` and `null` end it too.
 */
export type StoppingCriterion = (item: HandlerResponse) => boolean | null | undefined

/**
 * What a handler knows about the model and, during a call, about the batch. An index is the position of a
 * request in the batch, from 0.
 */
export interface Context {
  readonly modelName: string
  readonly modelVersion: string
  readonly manifest: Readonly<Record<string, unknown>>
  /** The complete model-config.yaml. */
  readonly modelConfig: Readonly<Record<string, unknown>>
  readonly properties: ContextProperties
  readonly logger: Logger
  readonly metrics: HandlerMetrics

  /** The request ids of the batch, in order. Empty in `initialize`. */
  readonly requestIds: readonly string[]
  /**
   * Aborts when every request of the batch is cancelled: clients disconnected, deadlines or time limits
   * passed, or the server stops.
   */
  readonly signal: AbortSignal
  /** Aborts when this request of the batch is cancelled. */
  requestSignal(index: number): AbortSignal
  /** The client's deadline in milliseconds since the epoch; undefined if it has none. */
  requestDeadline(index: number): number | undefined
  /** Whether the request asks for an explanation (/explanations) instead of a prediction. */
  readonly explain: boolean
  /** A request header; undefined if the client did not send it. Names are case-insensitive. */
  requestHeader(index: number, name: string): string | undefined
  /** All headers of a request, with the names as the client wrote them. */
  requestHeaders(index: number): Readonly<Record<string, string>>
  /**
   * Sets the HTTP status of one response, 200 to 599. Has no effect after its first item. @throws RangeError
   */
  setResponseStatus(index: number, status: number, reason?: string): void
  /** Sets the HTTP status of every response of the batch. @throws RangeError */
  setAllResponseStatus(status: number, reason?: string): void
  /**
   * Sets a response header. Has no effect after the first item, except for the header that ends sequences.
   * @throws TypeError when name or value is not valid in HTTP; RangeError for more than 64 headers
   */
  setResponseHeader(index: number, name: string, value: string): void
  /** Sets the content type of a response. Has no effect after its first item. @throws TypeError */
  setResponseContentType(index: number, contentType: string): void

  /**
   * A store for the handler, the same object in every call for the life of the worker. The server deletes
   * the entry under the id of a sequence when it ends. With continuous batching it deletes the entry under
   * the id of a request when it leaves.
   */
  readonly cache: Map<string, unknown>
  /**
   * Continuous batching: set it in each step, one criterion per request. Without one, `setStreamNext`
   * decides.
   */
  stoppingCriteria: readonly (StoppingCriterion | undefined)[] | undefined
  /** Continuous batching: whether the request takes part in the next step. Default: false. */
  setStreamNext(index: number, next: boolean): void

  /** The sequence of a request; undefined if the model has no sequenceBatching. */
  sequenceId(index: number): string | undefined
  /** Ends the sequence of a request with its response. Requests of the sequence that still wait get 503. */
  endSequence(index: number): void
  readonly sequenceHeaders: SequenceHeaders
}

/** The methods that the server calls. Required is `handle`, or one method of another dialect in its place. */
export interface Handler {
  /** Called once, before the first request. Load weights here. */
  initialize?(context: Context): void | Promise<void>
  /**
   * Answers a batch. Return one item per request, in the order of the batch, or an async iterable whose
   * values are intermediate responses with one item per request.
   */
  handle(
    requests: HandlerRequest[],
    context: Context,
  ): HandlerResponse[] | Promise<HandlerResponse[]> | AsyncIterable<HandlerResponse[]>
  /**
   * Answers /v1/chat/completions (docs/openai.md), with and without `stream`. Yield chunks: the server adds
   * what they lack (id, role, nulls, the end), and joins them for a unary response. Or return the complete
   * response. The request has index 0 in the context. Throw an {@link OpenAIError} to choose status and code.
   */
  chatCompletions?(
    request: ChatCompletionRequest,
    context: Context,
  ): AsyncIterable<ChatChunk> | Completion | Promise<Completion>
  /** Answers /v1/completions, in the same way. */
  completions?(
    request: CompletionRequest,
    context: Context,
  ): AsyncIterable<CompletionChunk> | Completion | Promise<Completion>
  /**
   * Answers /v1/embeddings: one vector per input. The server encodes it as the client requests (float or
   * base64).
   */
  embeddings?(request: EmbeddingsRequest, context: Context): EmbeddingsResult | Promise<EmbeddingsResult>
  /** Answers a customized describe (`GET /models/{name}?customized=true`). */
  describe?(context: Context): Record<string, unknown> | Promise<Record<string, unknown>>
  /** Answers /explanations. Without it the server calls `handle` with `context.explain` set. */
  explain?(requests: HandlerRequest[], context: Context): HandlerResponse[] | Promise<HandlerResponse[]>
  /**
   * Continuous batching: a request has left after it took part in a step, because it ended, failed or was
   * cancelled. Never called during a step.
   */
  release?(requestId: string, context: Context): void
  /**
   * A sequence has ended: by its client, by the handler, after `sequenceMaxIdleMSec` or
   * `sequenceTimeoutMSec`, because its client begins it anew, or with the worker (before `shutdown`). None of
   * its requests runs; others may. Its entry in `context.cache` is deleted as soon as this returns.
   */
  onSequenceEnd?(sequenceId: string, context: Context): void
  /** Called once, before the worker exits. */
  shutdown?(): void | Promise<void>
}
