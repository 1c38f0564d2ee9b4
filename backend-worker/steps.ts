import { ServeError } from '../common/errors.ts'
import type { PredictRequest } from '../protocol/messages.ts'
import { type BatchHost, encodeItem, RequestGroup } from './batch.ts'
import { HandlerContext } from './context.ts'
import type { HandlerRequest, StoppingCriterion } from './handler.ts'
import { callHook, handlerError } from './handler-error.ts'
import type { LoadedModel } from './model.ts'
import type { LoadedHandler } from './loader.ts'
import { ResponseStream, type StreamOwner } from './response-stream.ts'
import { Timings } from './timings.ts'
import { checkAnswer } from './output.ts'

/** A request that has not ended. */
interface Running {
  readonly stream: ResponseStream
  /** The handler gets the same object in every step. */
  readonly input: HandlerRequest
  /** Whether it has taken part in a step. */
  entered: boolean
}

/**
 * Continuous batching (docs/batching.md): calls the handler repeatedly, each time with all requests that have
 * not ended. New requests join at the next step; ended and cancelled ones leave. A request without room in
 * its window skips steps until it has room, while the others continue. The frontend never sends more requests
 * than may take part.
 */
export class Steps implements StreamOwner {
  readonly #handler: LoadedHandler
  readonly #model: LoadedModel
  readonly #host: BatchHost
  readonly #timings: Timings | undefined
  #running: Running[] = []
  #current: Step | undefined
  #active = false

  constructor(handler: LoadedHandler, model: LoadedModel, host: BatchHost) {
    this.#handler = handler
    this.#model = model
    this.#host = host
    this.#timings = Timings.for(model)
  }

  add(request: PredictRequest, decode: () => HandlerRequest): ResponseStream {
    const stream = new ResponseStream(request, this.#host.outlet, this.#host.limits, this)
    this.#running.push({ stream, input: decode(), entered: false })
    this.wake()
    return stream
  }

  /** Something changed: a request arrived or was cancelled, or a window has room again. */
  wake(): void {
    if (this.#active || this.#running.length === 0) return
    this.#active = true
    void this.#run()
  }

  streamGone(stream: ResponseStream): void {
    if (this.#current?.streams.includes(stream) === true) this.#current.streamGone()
    this.wake()
  }

  streamEnded(stream: ResponseStream): void {
    this.#host.streamEnded(stream)
  }

  /**
   * Starts in a later microtask, so that requests that arrived together share the first step, and no stream
   * ends while it is being cancelled.
   */
  async #run(): Promise<void> {
    for (;;) {
      await this.#host.outlet.flushEarly()
      this.#leave()
      const members = this.#running.filter(({ stream }) => stream.hasRoom)
      if (members.length === 0) break
      for (const group of sharing(members)) await this.#step(group)
    }
    this.#active = false
  }

  async #step(members: readonly Running[]): Promise<void> {
    const step = new Step(
      members.map(({ stream }) => stream),
      this.#host,
    )
    for (const member of members) member.entered = true
    const context = new HandlerContext(this.#model, step)
    this.#current = step
    const begun = performance.now()
    try {
      const answer: unknown = await this.#handler.handle(
        members.map(({ input }) => input),
        context,
      )
      this.#timings?.record({ begun, called: begun }, step.requestIds)
      this.#model.metrics.sender.answering()
      step.finish(answer, context.stoppingCriteria)
    } catch (thrown) {
      step.fail(thrown)
    }
    this.#current = undefined
  }

  /** Removes requests that have ended or were cancelled. */
  #leave(): void {
    const leaving = this.#running.filter(({ stream }) => stream.complete || stream.gone !== undefined)
    if (leaving.length === 0) return
    this.#running = this.#running.filter((request) => !leaving.includes(request))
    for (const { stream, entered } of leaving) {
      stream.fail(LEFT)
      this.#model.cache.delete(stream.requestId)
      if (entered) this.#release(stream)
    }
  }

  #release(stream: ResponseStream): void {
    const context = new HandlerContext(this.#model, new Step([], this.#host))
    callHook('release', this.#host.outlet, () => this.#handler.release?.(stream.requestId, context))
  }
}

/** Requests of one step have the same method, because `context.explain` applies to all of them. */
function sharing(members: readonly Running[]): readonly (readonly Running[])[] {
  const explained = members.filter(({ stream }) => stream.method === 'explain')
  if (explained.length === 0 || explained.length === members.length) return [members]
  return [members.filter(({ stream }) => stream.method !== 'explain'), explained]
}

/** Fails the requests that have not ended; a cancelled one fails with the reason of its cancel. */
const LEFT = new ServeError('CANCELLED', 'The request was cancelled')

type StoppingCriteria = readonly (StoppingCriterion | null | undefined)[] | undefined

/** One call of the handler in continuous batching, with the requests that take part in it. */
class Step extends RequestGroup {
  readonly streams: readonly ResponseStream[]
  readonly #next: (boolean | undefined)[] = []

  constructor(streams: readonly ResponseStream[], host: BatchHost) {
    super(host)
    this.streams = streams
  }

  override setNext(index: number, next: boolean): void {
    this.#next[index] = next
  }

  /**
   * Sends the handler's result: one item per request, intermediate or last according to criteria and
   * `setStreamNext`.
   * @throws ServeError INVALID_OUTPUT when the result is not a list with one item per request
   */
  finish(answer: unknown, criteria: StoppingCriteria): void {
    const items = checkAnswer(answer, this.streams.length)
    this.streams.forEach((stream, i) => {
      if (stream.gone !== undefined) return
      try {
        this.#answer(stream, items[i], this.#goesOn(i, items[i], criteria))
      } catch (thrown) {
        stream.fail(handlerError(thrown))
      }
    })
  }

  /** Fails only the requests that take part. */
  fail(thrown: unknown): void {
    const error = handlerError(thrown)
    for (const stream of this.streams) stream.fail(error)
  }

  #answer(stream: ResponseStream, item: unknown, goesOn: boolean): void {
    if (item instanceof Error) stream.fail(handlerError(item))
    else if (!goesOn) stream.finish(encodeItem(stream, item, true))
    else if (item === undefined) stream.alive()
    else stream.push(encodeItem(stream, item, false))
  }

  #goesOn(i: number, item: unknown, criteria: StoppingCriteria): boolean {
    if (item instanceof Error) return false
    const criterion = criteria?.[i]
    return criterion == null ? this.#next[i] === true : criterion(item) === false
  }
}
