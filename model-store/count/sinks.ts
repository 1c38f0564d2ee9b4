import { sendIntermediatePredictResponse, type Context, type RequestIds } from 'torchserve-ts'

/** Destination of a run's items. */
export interface Sink {
  /** A returned promise resolves when there is room for another item. */
  take(item: Buffer): Promise<void> | undefined
  /** The rest of the answer, at the end. */
  last(): Buffer
}

/** Sends each item at once to its request of the batch; the others get nothing. */
export class StreamSink implements Sink {
  readonly #index: number
  readonly #context: Context
  readonly #ids: RequestIds

  constructor(index: number, context: Context) {
    this.#index = index
    this.#context = context
    this.#ids = { [index]: context.requestIds[index]! }
  }

  take(item: Buffer): Promise<void> {
    const items: Buffer[] = this.#index === 0 ? [item] : []
    items[this.#index] = item
    return sendIntermediatePredictResponse(items, this.#ids, 'Intermediate', 200, this.#context)
  }

  last(): Buffer {
    return Buffer.alloc(0)
  }
}

/** Collects all items for one answer. */
export class WholeSink implements Sink {
  readonly #items: Buffer[] = []

  take(item: Buffer): undefined {
    this.#items.push(item)
  }

  last(): Buffer {
    return Buffer.concat(this.#items)
  }
}
