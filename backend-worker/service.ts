import { ServeError } from '../common/errors.ts'
import { headerValue } from '../common/headers.ts'
import {
  byMethod,
  type HandlerMethod,
  type ListedMethod,
  type NativeMethod,
} from '../common/handler-methods.ts'
import type { CancelReason, PredictMessage, PredictRequest, ToWorker } from '../protocol/messages.ts'
import { Batch, type BatchHost } from './batch.ts'
import { HandlerContext } from './context.ts'
import { callHook } from './handler-error.ts'
import type { HandlerRequest } from './handler.ts'
import { Inbox } from './inbox.ts'
import { isAsyncIterable, iterate } from './intermediate.ts'
import type { LoadedModel } from './model.ts'
import type { LoadedHandler, NativeCall } from './loader.ts'
import { type Outlet, sendLog } from './outlet.ts'
import { decodeRequest } from './input.ts'
import type { ResponseStream } from './response-stream.ts'
import { Steps } from './steps.ts'
import { type BatchTimes, Timings } from './timings.ts'

/** A call of the handler that is about to be made: its requests are open, so a cancel finds them. */
interface OpenCall {
  batch: Batch
  requests: readonly PredictRequest[]
  /** It waits for no other call of its message. */
  alone: boolean
}

/** Runs batches on a loaded handler. Several may run at once, so everything is found by request id. */
export class Service implements BatchHost {
  readonly outlet: Outlet
  readonly rank: number
  readonly limits: LoadedModel['limits']
  readonly #handler: LoadedHandler
  readonly #model: LoadedModel
  readonly #streams = new Map<number, ResponseStream>()
  readonly #inbox = new Inbox()
  readonly #steps: Steps | undefined
  readonly #timings: Timings | undefined
  /** Sequences that have not ended. */
  readonly #sequences = new Set<string>()
  /** When the handler was last called. */
  #called = 0
  #onIdle: (() => void)[] = []

  constructor(handler: LoadedHandler, model: LoadedModel, outlet: Outlet) {
    this.#handler = handler
    this.#model = model
    this.outlet = outlet
    this.rank = model.properties.rank
    this.limits = model.limits
    if (model.continuousBatching) this.#steps = new Steps(handler, model, this)
    this.#timings = Timings.for(model)
  }

  /** See LoadedHandler. */
  get methods(): readonly ListedMethod[] {
    return this.#handler.methods
  }

  /** Whether a request with this number is open. */
  has(id: number): boolean {
    return this.#streams.has(id) || this.#inbox.has(id)
  }

  /**
   * Accepts a batch. Requests with the same method share a call of the handler; the calls run one after the
   * other.
   */
  predict(message: PredictMessage): void {
    if (this.#model.sequenceBatching) this.#noteSequences(message.requests)
    if (message.after !== true) this.#callAll(this.#openAll(message))
    else if (this.#streams.size > 0) this.#inbox.add(message)
    else this.#beginSoon(message)
  }

  /** Gives back the batches with these requests that have not begun. Returns all their ids. */
  withdraw(ids: readonly number[]): number[] {
    return this.#inbox.withdraw(ids)
  }

  /** Gives back every batch that has not begun. */
  withdrawAll(): number[] {
    return this.#inbox.withdrawAll()
  }

  cancel(id: number, reason: CancelReason): void {
    this.#streams.get(id)?.cancel(reason)
  }

  cancelAll(reason: CancelReason): void {
    for (const stream of this.#streams.values()) stream.cancel(reason)
  }

  /** Credit for a request that has ended was already under way and is ignored. */
  credit(id: number, bytes: number): void {
    this.#streams.get(id)?.credit(bytes)
    this.#steps?.wake()
  }

  /** A further input of a request, or their end. */
  input({ id, data }: ToWorker & { type: 'input' }): void {
    const inputs = this.#streams.get(id)?.inputs
    if (data === undefined) inputs?.end()
    else inputs?.push(data)
  }

  /** The handler hears of the end of a sequence, and its entry leaves the cache. */
  endSequence(id: string): void {
    this.#sequences.delete(id)
    const context = new HandlerContext(this.#model, new Batch([], this))
    callHook('onSequenceEnd', this.outlet, () => this.#handler.onSequenceEnd?.(id, context))
    this.#model.cache.delete(id)
  }

  /** The worker ends, and its sequences with it. */
  endSequences(): void {
    for (const id of this.#sequences) this.endSequence(id)
  }

  /** Resolves when no request is open. */
  idle(): Promise<void> {
    if (this.#streams.size === 0) return Promise.resolve()
    return new Promise((resolve) => this.#onIdle.push(resolve))
  }

  /** Sends reported metrics that still wait. */
  flushMetrics(): void {
    this.#model.metrics.sender.flush()
  }

  streamEnded(stream: ResponseStream): void {
    this.#streams.delete(stream.id)
    if (this.#streams.size > 0) return
    const next = this.#inbox.next()
    if (next !== undefined) this.#beginNext(next)
    else for (const resolve of this.#onIdle.splice(0)) resolve()
  }

  /**
   * Begins the batch that waited behind the one that has just ended. To the frontend, that end is this begin:
   * it must have it before the handler sees the batch, so that it knows what had begun if the process dies.
   * A cancel that arrived while the last batch held the event loop counts too.
   */
  #beginNext(message: PredictMessage): void {
    const calls = this.#openAll(message)
    const flushed = this.outlet.flush()
    if (flushed === undefined) this.#callAll(calls)
    else void flushed.then(() => this.#callAll(calls))
  }

  /** A cancel may have arrived together with the batch, while the one before it held the event loop. */
  #beginSoon(message: PredictMessage): void {
    const calls = this.#openAll(message)
    setImmediate(() => this.#callAll(calls))
  }

  #noteSequences(requests: readonly PredictRequest[]): void {
    for (const { method, headers } of requests) {
      const id = method === 'describe' ? undefined : headerValue(headers, this.#model.sequenceHeaders.id)
      if (id !== undefined) this.#sequences.add(id)
    }
  }

  #openAll({ requests }: PredictMessage): OpenCall[] {
    const calls: OpenCall[] = []
    for (const group of byMethod(requests)) {
      const { method } = group[0]!
      if (this.#isStepped(method)) for (const request of group) this.#enter(request)
      else if (this.#goesAlone(method)) {
        for (const request of group)
          calls.push({ batch: this.#open([request]), requests: [request], alone: true })
      } else calls.push({ batch: this.#open(group), requests: group, alone: false })
    }
    return calls
  }

  #callAll(calls: readonly OpenCall[]): void {
    let before = NOTHING
    for (const { batch, requests, alone } of calls) {
      if (alone) void this.#run(batch, requests)
      else if (before === NOTHING) before = this.#run(batch, requests)
      else before = before.then(() => this.#run(batch, requests))
    }
  }

  /** Whether requests for the method take part in steps. An `explain` method is called once per batch. */
  #isStepped(method: HandlerMethod): boolean {
    if (this.#steps === undefined) return false
    return method === 'handle' || (method === 'explain' && this.#handler.explain === undefined)
  }

  #goesAlone(method: HandlerMethod): boolean {
    return this.#handler.native.get(method as NativeMethod)?.alone === true
  }

  #enter(request: PredictRequest): void {
    const stream = this.#steps!.add(request, () => this.#input(request))
    this.#streams.set(stream.id, stream)
  }

  #open(requests: readonly PredictRequest[]): Batch {
    const batch = new Batch(requests, this)
    for (const stream of batch.streams) this.#streams.set(stream.id, stream)
    return batch
  }

  /**
   * Not async, so that the requests with their undecoded inputs are not kept in memory while the handler
   * runs.
   */
  #run(batch: Batch, requests: readonly PredictRequest[]): Promise<void> {
    const timed = this.#timings !== undefined && requests[0]!.method !== 'describe'
    const begun = timed ? performance.now() : 0
    this.#called = begun
    let answer: unknown
    try {
      if (batch.gone) throw batch.streams[0]!.gone!
      answer = this.#call(batch, requests)
    } catch (thrown) {
      this.#fail(batch, thrown)
      return NOTHING
    }
    return this.#settle(batch, answer, timed ? { begun, called: this.#called } : undefined)
  }

  async #settle(batch: Batch, answer: unknown, times: BatchTimes | undefined): Promise<void> {
    try {
      let result = await answer
      if (isAsyncIterable(result)) result = await iterate(result, batch)
      if (times !== undefined) this.#timings?.record(times, batch.requestIds)
      this.#model.metrics.sender.answering()
      batch.finish(result)
    } catch (thrown) {
      this.#fail(batch, thrown)
    }
  }

  #fail(batch: Batch, thrown: unknown): void {
    this.#model.metrics.sender.answering()
    batch.fail(thrown)
  }

  #call(batch: Batch, requests: readonly PredictRequest[]): unknown {
    const handler = this.#handler
    const context = new HandlerContext(this.#model, batch)
    const { method } = requests[0]!
    switch (method) {
      case 'handle':
        return handler.handle(this.#inputs(requests), context)
      case 'explain':
        return (handler.explain ?? handler.handle)(this.#inputs(requests), context)
      case 'describe':
        return this.#describe(batch, context)
      default:
        return this.#nativeCall(method).answer(requests, context)
    }
  }

  #nativeCall(method: NativeMethod): NativeCall {
    const call = this.#handler.native.get(method)
    if (call !== undefined) return call
    throw new ServeError('PROTOCOL', `The handler has no ${method}`)
  }

  #inputs(requests: readonly PredictRequest[]): HandlerRequest[] {
    const inputs = requests.map((request) => this.#input(request))
    if (this.#timings !== undefined) this.#called = performance.now()
    return inputs
  }

  #input({ parts, requestId }: PredictRequest): HandlerRequest {
    return decodeRequest(parts, this.#model.decodeInput, (warning) => {
      sendLog(this.outlet, 'warn', warning, requestId)
    })
  }

  async #describe(batch: Batch, context: HandlerContext): Promise<unknown[]> {
    const described: unknown = await this.#handler.describe?.(context)
    const metadata = typeof described === 'object' && described !== null ? described : {}
    for (const stream of batch.streams) stream.head.contentType = 'application/json'
    return batch.streams.map(() => metadata)
  }
}

const NOTHING = Promise.resolve()
