import {
  PredictionException,
  type Context,
  type Handler,
  type HandlerRequest,
  type HandlerResponse,
} from 'torchserve-ts'
import { makeItem, Pause, StreamSink, WholeSink } from './items.ts'
import { readParameters, type RunRequest } from './parameters.ts'
import { Runs } from './runs.ts'

/**
 * Streams `n` items of `size` bytes, one every `delay` milliseconds or on request, and reports in another
 * request how many it has produced. Made for tests of cancellation and backpressure.
 */
export default class Count implements Handler {
  readonly #runs = new Runs()

  handle(requests: HandlerRequest[], context: Context): Promise<HandlerResponse[]> {
    if (requests.length === 1) return this.#answer(requests[0]!, 0, context).then(asList)
    return Promise.all(requests.map((request, index) => this.#answer(request, index, context)))
  }

  #answer(request: HandlerRequest, index: number, context: Context): Promise<HandlerResponse> {
    try {
      const wanted = readParameters(request)
      if (!('query' in wanted)) return this.#run(wanted, index, context)
      context.setResponseContentType(index, 'application/json')
      if (wanted.query === 'next') this.#runs.want(wanted.id)
      return Promise.resolve(this.#runs.produced(wanted.id))
    } catch (error) {
      return Promise.resolve(error)
    }
  }

  /** One function, because a thousand idle runs keep a thousand of its frames. */
  async #run(
    { id, n, size, delay, gated, stream, fail }: RunRequest,
    index: number,
    context: Context,
  ): Promise<HandlerResponse> {
    const signal = context.requestSignal(index)
    const sink = stream ? new StreamSink(index, context) : new WholeSink()
    const run = this.#runs.start(id)
    context.setResponseContentType(index, 'text/plain; charset=utf-8')
    try {
      for (let k = 1; k <= n; k += 1) {
        if (k > 1 && gated) await run.wanted(signal)
        else if (k > 1 && delay > 0) await Pause.for(delay, signal)
        if (signal.aborted) break
        if (fail === k - 1) throw new PredictionException(`Failed after ${fail} items, as asked`, 500)
        const item = makeItem(k, size)
        run.made(item.byteLength)
        await sink.take(item)
      }
      this.#runs.end(run, signal.aborted ? whyAborted(signal) : 'finished')
      return sink.last()
    } catch (error) {
      this.#runs.end(run, signal.aborted ? whyAborted(signal) : 'failed')
      return error
    }
  }
}

/** The signal also aborts when an item could not be sent; its reason is then not an AbortError. */
function whyAborted(signal: AbortSignal): 'cancelled' | 'failed' {
  return signal.reason instanceof Error && signal.reason.name === 'AbortError' ? 'cancelled' : 'failed'
}

function asList(answer: HandlerResponse): HandlerResponse[] {
  return [answer]
}
