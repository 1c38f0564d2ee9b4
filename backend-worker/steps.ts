import { ServeError } from '../common/errors.ts'
import type { PredictRequest } from '../protocol/messages.ts'
import type { BatchHost } from './batch.ts'
import { HandlerContext } from './context.ts'
import type { HandlerRequest } from './handler.ts'
import { describeThrown } from './handler-error.ts'
import type { LoadedModel } from './model.ts'
import type { LoadedHandler } from './native.ts'
import { sendLog } from './outlet.ts'
import { ResponseStream, type StreamOwner } from './response-stream.ts'
import { Step } from './step.ts'
import { Timings } from './timings.ts'

/** A request between its arrival and its end. */
interface Running {
  readonly stream: ResponseStream
  /** The handler gets the same object in every step. */
  readonly input: HandlerRequest
  /** Whether it has taken part in a step. */
  entered: boolean
}

/**
 * Continuous batching (spec 7.3): calls the handler again and again, each time with all requests that have not ended. New ones
 * join at the next step, those that ended or were cancelled are not in it any more. A request whose reader has no room waits
 * outside until it has; the others go on. The frontend sends no more requests than may take part.
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

  /** Something has changed: a request came or was cancelled, or a reader has room again. */
  wake(): void {
    if (this.#active || this.#running.length === 0) return
    this.#active = true
    void this.#run()
  }

  streamGone(stream: ResponseStream): void {
    this.#current?.streamGone(stream)
    this.wake()
  }

  streamEnded(stream: ResponseStream): void {
    this.#host.streamEnded(stream)
  }

  /** Begins in a later microtask: what came in one piece shares the first step, and no stream ends while it is being cancelled. */
  async #run(): Promise<void> {
    for (;;) {
      await this.#host.outlet.breather()
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

  /** Those that have ended, and those that nobody waits for any more. */
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
    try {
      const none = new Step([], this.#host)
      this.#handler.release?.(stream.requestId, new HandlerContext(this.#model, none))
    } catch (thrown) {
      sendLog(this.#host.outlet, 'error', `The handler threw in release: ${describeThrown(thrown)}`)
    }
  }
}

/** Those that share a step want the same method: the handler may be asked to explain (`context.explain`). */
function sharing(members: readonly Running[]): readonly (readonly Running[])[] {
  const explained = members.filter(({ stream }) => stream.method === 'explain')
  if (explained.length === 0 || explained.length === members.length) return [members]
  return [members.filter(({ stream }) => stream.method !== 'explain'), explained]
}

/** For those that have no end yet; the reason of their cancel takes its place. */
const LEFT = new ServeError('CANCELLED', 'The request was cancelled')
