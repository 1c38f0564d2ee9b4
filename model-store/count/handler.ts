import {
  sendIntermediatePredictResponse,
  type Context,
  type Handler,
  type HandlerRequest,
  type HandlerResponse,
  type RequestIds,
} from 'torchserve-ts'
import { makeItem } from './item.ts'
import { readParameters, type RunRequest } from './parameters.ts'
import { Pause } from './pause.ts'
import { Runs, type Run } from './runs.ts'

/**
 * Streams `n` items of `size` bytes, one every `delay` milliseconds, and says in another request how many it has
 * produced: made to watch cancellation and backpressure at work.
 */
export default class Count implements Handler {
  readonly #runs = new Runs()

  handle(requests: HandlerRequest[], context: Context): Promise<HandlerResponse[]> {
    return Promise.all(requests.map((request, index) => this.#answer(request, index, context)))
  }

  async #answer(request: HandlerRequest, index: number, context: Context): Promise<HandlerResponse> {
    try {
      const wanted = readParameters(request)
      if (!('query' in wanted)) return await this.#run(wanted, index, context)
      context.setResponseContentType(index, 'application/json')
      return this.#runs.produced(wanted.id)
    } catch (error) {
      return error
    }
  }

  async #run(wanted: RunRequest, index: number, context: Context): Promise<HandlerResponse> {
    const signal = context.requestSignal(index)
    const run = this.#runs.start(wanted.id)
    context.setResponseContentType(index, 'text/plain; charset=utf-8')
    try {
      const answer = await (wanted.stream ? stream : collect)(wanted, run, signal, index, context)
      this.#runs.end(wanted.id, run, signal.aborted ? whyAborted(signal) : 'finished')
      return answer
    } catch (error) {
      this.#runs.end(wanted.id, run, whyAborted(signal))
      throw error
    }
  }
}

/** A signal also aborts when an item could not be sent; then it is no AbortError. */
function whyAborted(signal: AbortSignal): 'cancelled' | 'failed' {
  return signal.reason instanceof Error && signal.reason.name === 'AbortError' ? 'cancelled' : 'failed'
}

/** Each item goes out when the reader has room for it; the last answer is empty. */
async function stream(
  wanted: RunRequest,
  run: Run,
  signal: AbortSignal,
  index: number,
  context: Context,
): Promise<string> {
  const ids: RequestIds = { [index]: context.requestIds[index]! }
  await produce(wanted, run, signal, (item) => {
    const items: Buffer[] = []
    items[index] = item
    return sendIntermediatePredictResponse(items, ids, 'Intermediate', 200, context)
  })
  return ''
}

async function collect(wanted: RunRequest, run: Run, signal: AbortSignal): Promise<Buffer> {
  const items: Buffer[] = []
  await produce(wanted, run, signal, (item) => void items.push(item))
  return Buffer.concat(items)
}

/** Makes item after item until all are made or the signal aborts. */
async function produce(
  { n, size, delay }: RunRequest,
  run: Run,
  signal: AbortSignal,
  deliver: (item: Buffer) => Promise<void> | undefined,
): Promise<void> {
  for (let k = 1; k <= n; k += 1) {
    if (k > 1 && delay > 0) await Pause.for(delay, signal)
    if (signal.aborted) return
    const item = makeItem(k, size)
    run.made(item.byteLength)
    await deliver(item)
  }
}
