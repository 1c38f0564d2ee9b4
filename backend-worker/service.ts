import { type Dialect, dialectOf } from '../common/dialects.ts'
import type { CancelReason, InputMessage, PredictMessage, PredictRequest } from '../protocol/messages.ts'
import { Batch, type BatchHost } from './batch.ts'
import { HandlerContext } from './context.ts'
import { isExplain } from './explain.ts'
import type { Handler, HandlerRequest } from './handler.ts'
import { iterate, isAsyncIterable } from './iterate.ts'
import type { Model } from './model.ts'
import { dialectsOf, nativeCalls } from './native.ts'
import type { NativeCall, NativeCalls } from './native-call.ts'
import { type Outlet, sendLog } from './outlet.ts'
import { decodeRequest } from './input.ts'
import type { ResponseStream } from './response-stream.ts'
import { Steps } from './steps.ts'
import { type BatchTimes, Timings } from './timings.ts'

/** Runs batches on a loaded handler. Several may run at once: everything is found by request id, nothing by its place in time. */
export class Service implements BatchHost {
  readonly outlet: Outlet
  readonly rank: number
  readonly limits: Model['limits']
  readonly #handler: Handler
  readonly #model: Model
  readonly #streams = new Map<number, ResponseStream>()
  readonly #steps: Steps | undefined
  readonly #native: NativeCalls
  readonly #timings: Timings | undefined
  /** When the handler was called the last time. */
  #called = 0
  #onIdle: (() => void)[] = []

  constructor(handler: Handler, model: Model, outlet: Outlet) {
    this.#handler = handler
    this.#model = model
    this.outlet = outlet
    this.rank = model.properties.rank
    this.limits = model.limits
    if (model.continuousBatching) this.#steps = new Steps(handler, model, this)
    this.#timings = Timings.for(model)
    this.#native = nativeCalls(handler)
  }

  get dialects(): Dialect[] {
    return dialectsOf(this.#handler, this.#native)
  }

  /** Whether the number belongs to a request that has not had its end. */
  has(id: number): boolean {
    return this.#streams.has(id)
  }

  /**
   * Takes a batch. Requests to be explained and others do not share a call of the handler: it sees only one kind, first the one,
   * then the other.
   */
  predict(received: PredictMessage): void {
    const message = this.#native.size === 0 ? received : this.#takeNative(received)
    const { action, requests } = message
    if (requests.length === 0) return
    if (this.#steps !== undefined && action === 'predict') {
      for (const request of requests) this.#enter(this.#steps, request)
      return
    }
    const explained = requests.filter((request) => isExplain(request.headers))
    if (explained.length === 0 || explained.length === requests.length) {
      void this.#run(this.#open(message), message)
      return
    }
    const others = requests.filter((request) => !isExplain(request.headers))
    const groups = [others, explained].map((group): PredictMessage => ({
      type: 'predict',
      action,
      requests: group,
    }))
    const batches = groups.map((group) => this.#open(group))
    void this.#run(batches[0]!, groups[0]!).then(() => this.#run(batches[1]!, groups[1]!))
  }

  cancel(ids: readonly number[], reason: CancelReason): void {
    for (const id of ids) this.#streams.get(id)?.cancel(reason)
  }

  cancelAll(reason: CancelReason): void {
    for (const stream of [...this.#streams.values()]) stream.cancel(reason)
  }

  /** Requests that have ended get credit too, for what was under way: it is ignored. */
  credit(id: number, bytes: number): void {
    this.#streams.get(id)?.credit(bytes)
    this.#steps?.wake()
  }

  /** A further input of a request, or their end. */
  input({ id, data }: InputMessage): void {
    const inputs = this.#streams.get(id)?.inputs
    if (data === undefined) inputs?.end()
    else inputs?.push(data)
  }

  /** Resolves when no request is open. */
  idle(): Promise<void> {
    if (this.#streams.size === 0) return Promise.resolve()
    return new Promise((resolve) => this.#onIdle.push(resolve))
  }

  /** Sends what was reported and has not left yet. */
  flushMetrics(): void {
    this.#model.metrics.sender.flush()
  }

  streamEnded(stream: ResponseStream): void {
    this.#streams.delete(stream.id)
    if (this.#streams.size > 0) return
    for (const resolve of this.#onIdle.splice(0)) resolve()
  }

  /** Requests of a dialect that the handler speaks have a call each; what is left is for `handle`. */
  #takeNative(message: PredictMessage): PredictMessage {
    const requests = message.requests.filter((request) => {
      const dialect = dialectOf(request.headers)
      const call = dialect === undefined ? undefined : this.#native.get(dialect)
      if (call !== undefined) this.#runNative(call, { ...message, requests: [request] })
      return call === undefined
    })
    return { ...message, requests }
  }

  #runNative(call: NativeCall, message: PredictMessage): void {
    const batch = this.#open(message)
    void this.#run(batch, message, () => call(message.requests[0]!, new HandlerContext(this.#model, batch)))
  }

  /** Explaining is one call where the handler has a method for it. */
  #enter(steps: Steps, request: PredictRequest): void {
    if (this.#handler.explain !== undefined && isExplain(request.headers)) {
      const message: PredictMessage = { type: 'predict', action: 'predict', requests: [request] }
      void this.#run(this.#open(message), message)
      return
    }
    const stream = steps.add(request, () => this.#input(request))
    this.#streams.set(stream.id, stream)
  }

  #open(message: PredictMessage): Batch {
    const batch = new Batch(message.requests, this)
    for (const stream of batch.streams) this.#streams.set(stream.id, stream)
    return batch
  }

  /** Not async itself: what waits for the handler must not keep the message, with its undecoded inputs, in memory. */
  #run(batch: Batch, message: PredictMessage, native?: () => unknown): Promise<void> {
    const timed = this.#timings !== undefined && message.action === 'predict'
    const begun = timed ? performance.now() : 0
    let answer: unknown
    try {
      if (batch.gone) throw batch.streams[0]!.gone!
      answer = native === undefined ? this.#call(batch, message) : native()
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

  #call(batch: Batch, message: PredictMessage): unknown {
    const handler = this.#handler
    const context = new HandlerContext(this.#model, batch)
    if (message.action === 'describe') return this.#describe(batch, context)
    const inputs = this.#inputs(message)
    if (this.#timings !== undefined) this.#called = performance.now()
    if (context.explain && handler.explain !== undefined) return handler.explain(inputs, context)
    return handler.handle(inputs, context)
  }

  #inputs(message: PredictMessage): HandlerRequest[] {
    return message.requests.map((request) => this.#input(request))
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
