import { ServeError } from '../common/errors.ts'
import { halfAtEnd } from '../common/texts.ts'
import type { PredictRequest } from '../protocol/messages.ts'
import { describeThrown, handlerError } from './handler-error.ts'
import { type Outlet, sendLog } from './outlet.ts'
import { checkAnswer, encodeOutput } from './output.ts'
import { ResponseStream, type StreamLimits, type StreamOwner } from './response-stream.ts'

/** The requests of one call of the handler: a batch, or a step of continuous batching. */
export abstract class RequestGroup {
  abstract readonly streams: readonly ResponseStream[]
  readonly outlet: Outlet
  readonly rank: number
  #requestIds: readonly string[] | undefined
  #controller: AbortController | undefined

  constructor({ outlet, rank }: { readonly outlet: Outlet; readonly rank: number }) {
    this.outlet = outlet
    this.rank = rank
  }

  get requestIds(): readonly string[] {
    return (this.#requestIds ??= this.streams.map(({ requestId }) => requestId))
  }

  /** Whether all requests are cancelled. */
  get gone(): boolean {
    return this.streams.length > 0 && this.streams.every(({ gone }) => gone !== undefined)
  }

  /** Aborts when all requests are cancelled. */
  get signal(): AbortSignal {
    if (this.streams.length === 1) return this.streams[0]!.signal
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.gone) this.#controller.abort(this.streams[0]?.gone)
    }
    return this.#controller.signal
  }

  /** One of the requests was cancelled or has failed. */
  streamGone(): void {
    if (this.gone) this.#controller?.abort(this.streams[0]?.gone)
  }

  /** Steps only: whether a request takes part in the next step. */
  setNext?(index: number, next: boolean): void
}

/** What all batches of a worker share. */
export interface BatchHost {
  readonly outlet: Outlet
  readonly limits: StreamLimits
  readonly rank: number
  /** One request of the batch has ended. */
  streamEnded(stream: ResponseStream): void
}

/** The requests that one call of the handler answers. Ranks other than 0 only report that they are done. */
export class Batch extends RequestGroup implements StreamOwner {
  readonly streams: readonly ResponseStream[]
  /** Called when every request of the batch was cancelled. */
  onGone: (() => void) | undefined
  readonly #host: BatchHost

  constructor(requests: readonly PredictRequest[], host: BatchHost) {
    super(host)
    this.#host = host
    this.streams = requests.map((request) => new ResponseStream(request, host.outlet, host.limits, this))
  }

  /**
   * Sends the handler's result: one item per request. An item that is an error, or that cannot be encoded,
   * fails its own request. @throws ServeError INVALID_OUTPUT when the result is not a list with one item per
   * request
   */
  finish(answer: unknown): void {
    if (this.rank !== 0) {
      this.#finishSilently()
      return
    }
    const items = checkAnswer(answer, this.streams.length)
    this.streams.forEach((stream, i) => {
      try {
        const item = stream.gone === undefined ? items[i] : undefined
        if (item instanceof Error) stream.fail(handlerError(item))
        else stream.finish(encodeItem(stream, item, true))
      } catch (thrown) {
        stream.fail(handlerError(thrown))
      }
    })
  }

  /** The handler threw: every request that has not ended fails with the error. */
  fail(thrown: unknown): void {
    if (this.rank !== 0) {
      if (!this.gone) sendLog(this.outlet, 'error', `The handler threw: ${describeThrown(thrown)}`)
      this.#finishSilently()
      return
    }
    const error = handlerError(thrown)
    for (const stream of this.streams) stream.fail(error)
  }

  override streamGone(): void {
    super.streamGone()
    if (this.gone) this.onGone?.()
  }

  streamEnded(stream: ResponseStream): void {
    this.#host.streamEnded(stream)
  }

  #finishSilently(): void {
    for (const stream of this.streams) {
      this.outlet.send({ type: 'finished', id: stream.id })
      this.streamEnded(stream)
    }
  }
}

/** Sends one intermediate item. An item that cannot be encoded fails its request only. */
export function pushItem(stream: ResponseStream, item: unknown): void {
  try {
    if (item instanceof Error) stream.drop(handlerError(item))
    else stream.push(encodeItem(stream, item, false))
  } catch (thrown) {
    stream.drop(thrown instanceof ServeError ? thrown : handlerError(thrown))
  }
}

/**
 * The bytes of an item. Half a character at the end of a text waits for the next item; without one it becomes
 * U+FFFD. @throws ServeError INVALID_OUTPUT when the item cannot be encoded
 */
export function encodeItem(stream: ResponseStream, item: unknown, isLast: boolean): Uint8Array {
  const { half } = stream
  if (half === '' && typeof item !== 'string') return encodeOutput(item)
  stream.half = ''
  if (typeof item !== 'string' && item !== undefined) {
    stream.push(encodeOutput(half))
    return encodeOutput(item)
  }
  const text = half + (item ?? '')
  if (!isLast) stream.half = halfAtEnd(text)
  return encodeOutput(stream.half === '' ? text : text.slice(0, -1))
}
