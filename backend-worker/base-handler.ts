import type { Context, Handler, HandlerRequest, HandlerResponse } from './handler.ts'

/** Splits `handle` into three steps. A subclass overrides what it needs. */
export abstract class BaseHandler implements Handler {
  initialize(_context: Context): void | Promise<void> {}

  /** Converts requests to model input. Default: the value of `data`, else `body`, of each request. */
  preprocess(requests: HandlerRequest[], _context: Context): unknown {
    return requests.map((request) => request['data'] ?? request['body'])
  }

  /** Converts model input to model output. Default: returns the input. */
  inference(input: unknown, _context: Context): unknown {
    return input
  }

  /**
   * Converts model output to one item per request. Default: returns the output, which must then be a list.
   */
  postprocess(output: unknown, _context: Context): HandlerResponse[] | Promise<HandlerResponse[]> {
    return output as HandlerResponse[]
  }

  handle(
    requests: HandlerRequest[],
    context: Context,
  ): HandlerResponse[] | Promise<HandlerResponse[]> | AsyncIterable<HandlerResponse[]> {
    return this.#steps(requests, context)
  }

  async #steps(requests: HandlerRequest[], context: Context): Promise<HandlerResponse[]> {
    const input = await this.preprocess(requests, context)
    const output = await this.inference(input, context)
    return this.postprocess(output, context)
  }
}
