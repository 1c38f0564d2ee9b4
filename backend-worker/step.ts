import { encodeItem, type BatchHost } from './batch.ts'
import type { StoppingCriterion } from './handler.ts'
import { handlerError } from './handler-error.ts'
import { checkAnswer } from './output.ts'
import { RequestGroup } from './request-group.ts'
import type { ResponseStream } from './response-stream.ts'

export type StoppingCriteria = readonly (StoppingCriterion | null | undefined)[] | undefined

/** One call of the handler in continuous batching, with the requests that take part in it. */
export class Step extends RequestGroup {
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
