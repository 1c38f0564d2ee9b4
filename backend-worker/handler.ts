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
 * The public door for handler authors: what a handler gets and what it may answer.
 *
 * A handler module exports one of
 * - a class with `handle` (extend {@link BaseHandler} or not), as its default export or its only class,
 * - a function `handle(requests, context)`, as its default export or by that name; it may be `async *`,
 * - a class with `predict` or `predictStream`, or functions of these names: a handler of the Open Inference Protocol (InferenceHandler).
 */

/** One request of a batch: part name -> value. JSON and text parts are decoded, everything else is a Buffer. */
export type HandlerRequest = Record<string, unknown>

/**
 * One item of an answer. Bytes (any typed array) go out as they are, strings as UTF-8, anything else as JSON (two spaces, as
 * TorchServe writes it). An Error fails its own request only. `undefined` in an intermediate response: nothing for that
 * request this time; as the last item: an empty body.
 */
export type HandlerResponse = unknown

/** Request ids of a batch by their place in it. Arrays fit; leave places out to address a part of the batch. */
export type RequestIds = Readonly<Record<number, string>>

export interface Logger {
  debug(message: string, requestIndex?: number): void
  info(message: string, requestIndex?: number): void
  warn(message: string, requestIndex?: number): void
  error(message: string, requestIndex?: number): void
}

type Dimensions = Readonly<Record<string, string>>

/** A metric of the worker's cache: nothing is added to the dimensions of its values. */
export interface Metric {
  readonly name: string
  readonly unit: string
  readonly kind: MetricKind
  readonly dimensionNames: readonly string[]
  /** One value for each of its dimensions; `requestId` stands beside it in the log file. */
  addOrUpdate(value: number, dimensionValues?: readonly string[], requestId?: string): void
  /** The same with dimensions of one's own. */
  update(value: number, requestId?: string, dimensions?: Dimensions): void
}

/**
 * What a handler may report. A metric reaches the metrics page and the log files if metrics.yaml declares it, or with
 * `model_metrics_auto_detect=true`. `ModelName` and `Level` (`Model`) are added to the dimensions. A value counts for all requests of the
 * batch, with `requestIndex` for one of them. What cannot be (a negative counter, no number) is logged and left out.
 */
export interface HandlerMetrics {
  /** Adds `value` (not negative) to a counter. */
  addCounter(name: string, value: number, dimensions?: Dimensions, requestIndex?: number): void
  /** A duration; unit `ms` or `s`, default `ms`; default a gauge. */
  addTime(
    name: string,
    value: number,
    unit?: 'ms' | 's',
    dimensions?: Dimensions,
    kind?: MetricKind,
    requestIndex?: number,
  ): void
  /** A size; unit `B`, `kB`, `MB` or `GB`, default `MB`; default a gauge. */
  addSize(
    name: string,
    value: number,
    unit?: 'B' | 'kB' | 'MB' | 'GB',
    dimensions?: Dimensions,
    kind?: MetricKind,
    requestIndex?: number,
  ): void
  /** Default a gauge. */
  addPercent(
    name: string,
    value: number,
    dimensions?: Dimensions,
    kind?: MetricKind,
    requestIndex?: number,
  ): void
  /** Counts errors; `Level` is `Error`, and no request is named. */
  addError(name: string, value: number, dimensions?: Dimensions): void
  /** Any metric; default a counter. */
  addMetric(
    name: string,
    value: number,
    unit: string,
    dimensions?: Dimensions,
    kind?: MetricKind,
    requestIndex?: number,
  ): void
  /** Puts a metric into the worker's cache, in place of one of its name and kind; reports nothing. Default a counter. */
  addMetricToCache(name: string, unit: string, dimensionNames?: readonly string[], kind?: MetricKind): Metric
  /** A metric of the cache, which holds those that metrics.yaml declares as well; default a counter. */
  getMetric(name: string, kind?: MetricKind): Metric | undefined
}

/** What stays the same for the life of a worker. */
export interface ContextProperties {
  /** Absolute folder with the model's files. */
  readonly modelDir: string
  readonly batchSize: number
  /** The server's number of the (first) GPU of this worker, of which a Node worker sees no others; -1 on CPU. */
  readonly gpuId: number
  /** `cpu`, or `cuda:<n>` as this process counts its GPUs: 0, or the local rank in a rank group. */
  readonly device: string
  /** limit_max_image_pixels of the server: false if a handler may decode images of any size. */
  readonly limitMaxImagePixels: boolean
  readonly rank: number
  readonly localRank: number
  readonly worldSize: number
  readonly serverName: string
  readonly serverVersion: string
}

/** Names of the headers that speak of sequences. */
export interface SequenceHeaders {
  readonly id: string
  readonly start: string
  readonly end: string
}

/**
 * Decides after a step of continuous batching whether a request ends with this item: true ends it, false makes the item an
 * intermediate response and the request takes part in the next step. Nothing (undefined, null) ends it too.
 */
export type StoppingCriterion = (item: HandlerResponse) => boolean | null | undefined

/** What a handler knows about the model and, in `handle`, about the batch in hand. */
export interface Context {
  readonly modelName: string
  readonly modelVersion: string
  readonly manifest: Readonly<Record<string, unknown>>
  /** The whole model-config.yaml. */
  readonly modelConfig: Readonly<Record<string, unknown>>
  readonly properties: ContextProperties
  readonly logger: Logger
  readonly metrics: HandlerMetrics

  /** The ids of the batch, in its order. Empty in `initialize`. */
  readonly requestIds: readonly string[]
  /** Aborts when nobody waits for any request of the batch any more (clients left, deadlines, timeouts, shutdown). */
  readonly signal: AbortSignal
  /** The signal of one request of the batch. */
  requestSignal(index: number): AbortSignal
  /** Milliseconds since the epoch after which nobody waits for the answer; undefined: no such time. */
  requestDeadline(index: number): number | undefined
  /** Whether the request is to be explained instead of predicted (/explanations). */
  readonly explain: boolean
  /** A request header; names in any letter case. */
  requestHeader(index: number, name: string): string | undefined
  requestHeaders(index: number): Readonly<Record<string, string>>
  /** Status of one answer; counts until its first response. */
  setResponseStatus(index: number, status: number, reason?: string): void
  setAllResponseStatus(status: number, reason?: string): void
  setResponseHeader(index: number, name: string, value: string): void
  setResponseContentType(index: number, contentType: string): void

  /**
   * The handler's own, the same in every call for the life of the worker. With continuous batching the entry under a request's
   * id is deleted when that request leaves.
   */
  readonly cache: Map<string, unknown>
  /** Continuous batching: set in each step, one criterion per request. Where there is none, `setStreamNext` decides. */
  stoppingCriteria: readonly (StoppingCriterion | undefined)[] | undefined
  /** Continuous batching: whether the request takes part in the next step. Default: it ends with this one. */
  setStreamNext(index: number, next: boolean): void

  /** The sequence that a request belongs to; undefined: none (the model has no sequenceBatching). */
  sequenceId(index: number): string | undefined
  /** Ends the sequence of a request with the answer to it: its waiting requests are refused. */
  endSequence(index: number): void
  readonly sequenceHeaders: SequenceHeaders
}

/** What the server calls. Everything may be left out but `handle`, or one method of another dialect in its place. */
export interface Handler {
  /** Once, before the first request: load weights here. */
  initialize?(context: Context): void | Promise<void>
  /** One answer per request of the batch, in its order; or an async iterable whose items are intermediate responses. */
  handle(
    requests: HandlerRequest[],
    context: Context,
  ): HandlerResponse[] | Promise<HandlerResponse[]> | AsyncIterable<HandlerResponse[]>
  /**
   * Answers /v1/chat/completions itself (docs/openai.md), whether the client streams or not: yields chunks, of which the server fills in what
   * is missing (id, role, nulls, the end) and joins them if need be; or the whole completion. The request of the call is number 0 of
   * the context. Throw an {@link OpenAIError} for a status and code of one's own.
   */
  chatCompletions?(
    request: ChatCompletionRequest,
    context: Context,
  ): AsyncIterable<ChatChunk> | Completion | Promise<Completion>
  /** The same for /v1/completions. */
  completions?(
    request: CompletionRequest,
    context: Context,
  ): AsyncIterable<CompletionChunk> | Completion | Promise<Completion>
  /** Answers /v1/embeddings: one vector per input, in whatever form the client wants them. */
  embeddings?(request: EmbeddingsRequest, context: Context): EmbeddingsResult | Promise<EmbeddingsResult>
  /** Answers a customized describe. */
  describe?(context: Context): Record<string, unknown> | Promise<Record<string, unknown>>
  /** Answers /explanations; absent: `handle` with context.explain set. */
  explain?(requests: HandlerRequest[], context: Context): HandlerResponse[] | Promise<HandlerResponse[]>
  /**
   * Continuous batching: a request that took part in a step has left, whether it ended, failed or was cancelled. Never called while
   * a step runs.
   */
  release?(requestId: string, context: Context): void
  /** Once, before the worker leaves. */
  shutdown?(): void | Promise<void>
}

/** `handle` in three steps, each of which a subclass may replace. */
export abstract class BaseHandler implements Handler {
  initialize(_context: Context): void | Promise<void> {}

  /** Requests to model input. Default: the value of `data`, else `body`, of each request. */
  preprocess(requests: HandlerRequest[], _context: Context): unknown {
    return requests.map((request) => request['data'] ?? request['body'])
  }

  /** Model input to model output. Default: the input. */
  inference(input: unknown, _context: Context): unknown {
    return input
  }

  /** Model output to one answer per request. Default: the output, which must be a list then. */
  postprocess(output: unknown, _context: Context): HandlerResponse[] | Promise<HandlerResponse[]> {
    return output as HandlerResponse[]
  }

  handle(
    requests: HandlerRequest[],
    context: Context,
  ): HandlerResponse[] | Promise<HandlerResponse[]> | AsyncIterable<HandlerResponse[]> {
    return this.#steps(requests, context)
  }

  async #steps(requests: HandlerRequest[], context: Context): Promise<HandlerResponse[]> {
    const input = await this.preprocess(requests, context)
    const output = await this.inference(input, context)
    return this.postprocess(output, context)
  }
}
