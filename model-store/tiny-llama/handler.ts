import { basename } from 'node:path'
import {
  BaseHandler,
  sendIntermediatePredictResponse,
  type Context,
  type HandlerRequest,
  type HandlerResponse,
} from 'torchserve-ts'
import { Engine } from './engine.ts'
import { readCompletion } from './parameters.ts'
import { readSettings } from './settings.ts'

/** Continues a text with any GGUF model, token by token. Parameters: parameters.ts; configuration: model-config.yaml. */
export default class TextCompletion extends BaseHandler {
  #engine: Engine | undefined
  #maxTokens = 0

  override async initialize(context: Context): Promise<void> {
    const settings = readSettings(context)
    const start = performance.now()
    this.#engine = await Engine.load(settings, context.logger)
    this.#maxTokens = settings.maxTokens
    context.logger.info(
      `Loaded ${basename(settings.modelPath)} in ${Math.round(performance.now() - start)} ms: ` +
        `context of ${this.#engine.contextSize} tokens, ${settings.sequences} sequences, ` +
        `${settings.threads} thread${settings.threads === 1 ? '' : 's'}, gpu ${settings.gpu}`,
    )
  }

  override handle(requests: HandlerRequest[], context: Context): Promise<HandlerResponse[]> {
    return Promise.all(requests.map((request, index) => this.#answer(request, index, context)))
  }

  async shutdown(): Promise<void> {
    await this.#engine?.dispose()
  }

  /** The last item of a stream is empty; an error is the answer of its own request only. */
  async #answer(request: HandlerRequest, index: number, context: Context): Promise<HandlerResponse> {
    const signal = context.requestSignal(index)
    try {
      const wanted = readCompletion(request, this.#maxTokens)
      context.setResponseContentType(index, 'text/plain; charset=utf-8')
      const send = wanted.stream ? sender(index, context) : () => undefined
      const text = await this.#engine!.complete(wanted, signal, send)
      return wanted.stream ? '' : text
    } catch (error) {
      if (signal.aborted) return ''
      return error instanceof Error ? error : new Error(String(error))
    }
  }
}

/** Sends to one request of the batch; the others get nothing this time. */
function sender(index: number, context: Context): (text: string) => Promise<void> {
  const id = { [index]: context.requestIds[index]! }
  return (text) => {
    const items: string[] = []
    items[index] = text
    return sendIntermediatePredictResponse(items, id, 'Intermediate', 200, context)
  }
}
