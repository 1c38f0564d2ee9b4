import { type Context, type RequestIds, sendIntermediatePredictResponse } from 'torchserve-ts'

const NEWLINE = 0x0a
const SPACE = 0x20

/** The last item without its number; runs make many items of the same size. */
let blank: Buffer = Buffer.alloc(0)

/** Item k: its number, padded with spaces to `size` bytes, newline last. Longer if the number needs it. */
export function makeItem(k: number, size: number): Buffer {
  const digits = String(k)
  const length = Math.max(size, digits.length + 1)
  if (blank.byteLength !== length) blank = makeBlank(length)
  const item: Buffer = Buffer.from(blank)
  for (let i = 0; i < digits.length; i += 1) item[i] = digits.charCodeAt(i)
  return item
}

function makeBlank(length: number): Buffer {
  const bytes = Buffer.alloc(length, SPACE)
  bytes[length - 1] = NEWLINE
  return bytes
}

/**
 * Waits for a time or until the signal aborts. One object is timer, listener and promise, because a thousand
 * idle streams keep a thousand of them.
 */
export class Pause {
  readonly #signal: AbortSignal
  readonly #timer: NodeJS.Timeout
  readonly #wake: () => void

  private constructor(ms: number, signal: AbortSignal, wake: () => void) {
    this.#signal = signal
    this.#wake = wake
    // eslint-disable-next-line no-restricted-syntax -- `delay` has a bound of its own (parameters.ts)
    this.#timer = setTimeout(Pause.#end, ms, this)
    signal.addEventListener('abort', this)
  }

  static for(ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve()
    return new Promise((resolve) => new Pause(ms, signal, resolve))
  }

  /** The signal aborted. */
  handleEvent(): void {
    clearTimeout(this.#timer)
    Pause.#end(this)
  }

  static #end(pause: Pause): void {
    pause.#signal.removeEventListener('abort', pause)
    pause.#wake()
  }
}

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
