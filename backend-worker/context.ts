import type {
  Context,
  HandlerMetrics,
  HandlerResponse,
  Logger,
  RequestIds,
  SequenceHeaders,
  StoppingCriterion,
} from './handler.ts'
import { SEND, sendToBatch } from './intermediate.ts'
import { ContextLogger } from './outlet.ts'
import { ContextMetrics } from './metrics.ts'
import type { LoadedModel } from './model.ts'
import type { RequestGroup } from './batch.ts'
import { type ResponseHead, setContentType, setHeader, setStatus } from './response-head.ts'
import type { ResponseStream } from './response-stream.ts'

/** The further inputs of a request whose client sends several; for the adapters of this package. */
export const INPUTS = Symbol('inputs')
export interface WithInputs {
  [INPUTS]?(): AsyncIterable<Uint8Array> | undefined
}

/** The context of one call of the handler: the model and the batch. In `initialize` the batch is empty. */
export class HandlerContext implements Context {
  stoppingCriteria: readonly (StoppingCriterion | undefined)[] | undefined
  readonly #model: LoadedModel
  readonly #batch: RequestGroup
  #logger: ContextLogger | undefined
  #metrics: ContextMetrics | undefined

  constructor(model: LoadedModel, batch: RequestGroup) {
    this.#model = model
    this.#batch = batch
  }

  get modelName(): string {
    return this.#model.name
  }

  get modelVersion(): string {
    return this.#model.version
  }

  get manifest(): Context['manifest'] {
    return this.#model.manifest
  }

  get modelConfig(): Context['modelConfig'] {
    return this.#model.config
  }

  get properties(): Context['properties'] {
    return this.#model.properties
  }

  get logger(): Logger {
    return (this.#logger ??= new ContextLogger(this.#batch.outlet, this.#batch.requestIds))
  }

  get metrics(): HandlerMetrics {
    return (this.#metrics ??= new ContextMetrics(
      this.#model.metrics,
      this.#model.name,
      this.#batch.requestIds,
    ))
  }

  get requestIds(): readonly string[] {
    return this.#batch.requestIds
  }

  get signal(): AbortSignal {
    return this.#batch.signal
  }

  get explain(): boolean {
    return this.#batch.streams[0]?.method === 'explain'
  }

  requestSignal(index: number): AbortSignal {
    return this.#stream(index).signal
  }

  requestDeadline(index: number): number | undefined {
    return this.#stream(index).deadline
  }

  requestHeaders(index: number): Readonly<Record<string, string>> {
    return this.#stream(index).requestHeaders
  }

  requestHeader(index: number, name: string): string | undefined {
    return this.#stream(index).requestHeader(name)
  }

  setResponseStatus(index: number, status: number, reason?: string): void {
    setStatus(this.#head(index), status, reason)
  }

  setAllResponseStatus(status: number, reason?: string): void {
    for (const stream of this.#batch.streams) setStatus(stream.head, status, reason)
  }

  /** TorchServe's handlers set ts_stream_next themselves. Here only the server writes it. */
  setResponseHeader(index: number, name: string, value: string): void {
    if (name === 'ts_stream_next') this.setStreamNext(index, value === 'true')
    else setHeader(this.#head(index), name, value)
  }

  setResponseContentType(index: number, contentType: string): void {
    setContentType(this.#head(index), contentType)
  }

  get cache(): Map<string, unknown> {
    return this.#model.cache
  }

  setStreamNext(index: number, next: boolean): void {
    this.#batch.setNext?.(index, next)
  }

  get sequenceHeaders(): SequenceHeaders {
    return this.#model.sequenceHeaders
  }

  sequenceId(index: number): string | undefined {
    return this.requestHeader(index, this.#model.sequenceHeaders.id)
  }

  endSequence(index: number): void {
    const id = this.sequenceId(index)
    if (id !== undefined) setHeader(this.#head(index), this.#model.sequenceHeaders.end, id)
  }

  [SEND](
    ret: readonly HandlerResponse[],
    requestIds: RequestIds,
    message: string,
    code: number,
  ): Promise<void> {
    return sendToBatch(this.#batch, ret, requestIds, message, code)
  }

  [INPUTS](): AsyncIterable<Uint8Array> | undefined {
    return this.#batch.streams[0]?.inputs
  }

  #head(index: number): ResponseHead {
    return this.#stream(index).head
  }

  #stream(index: number): ResponseStream {
    const stream = this.#batch.streams[index]
    if (stream !== undefined) return stream
    throw new RangeError(`The batch of ${this.#batch.streams.length} requests has no index ${index}`)
  }
}
