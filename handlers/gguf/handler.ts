import { basename } from 'node:path'
import {
  BaseHandler,
  sendIntermediatePredictResponse,
  type ChatChunk,
  type ChatCompletionRequest,
  type CompletionChunk,
  type CompletionRequest,
  type Context,
  type EmbeddingsRequest,
  type EmbeddingsResult,
  type HandlerRequest,
  type HandlerResponse,
  type RequestIds,
} from 'torchserve-ts'
import { ChatPrompts } from './chat-prompts.ts'
import { chat } from './chat.ts'
import { completions, embeddings } from './completions.ts'
import { Engine } from './engine.ts'
import { readCompletion, withNumbers } from './parameters.ts'
import { readSettings, type LlamaSettings } from './settings.ts'

/**
 * Serves any GGUF model: TorchServe's inference API (see parameters.ts) token by token, and the OpenAI API.
 * All requests share one loaded model. Configured in model-config.yaml.
 */
export default class TextCompletion extends BaseHandler {
  #engine!: Engine
  #settings!: LlamaSettings
  #prompts!: ChatPrompts

  override async initialize(context: Context): Promise<void> {
    const settings = readSettings(context)
    for (const warning of settings.warnings) context.logger.warn(warning)
    const start = performance.now()
    this.#engine = await Engine.load(settings, context.logger)
    this.#settings = settings
    this.#prompts = new ChatPrompts(this.#engine, settings.chatTemplate)
    context.logger.info(
      `Loaded ${basename(settings.modelPath)} in ${Math.round(performance.now() - start)} ms: ` +
        `context of ${this.#engine.contextSize} tokens, ${settings.sequences} sequences, ` +
        `${this.#engine.threads} thread${this.#engine.threads === 1 ? '' : 's'}, gpu ${settings.gpu}, ` +
        `${this.#prompts.source} chat template`,
    )
  }

  override handle(requests: HandlerRequest[], context: Context): Promise<HandlerResponse[]> {
    return Promise.all(requests.map((request, index) => this.#answer(request, index, context)))
  }

  chatCompletions(request: ChatCompletionRequest, context: Context): AsyncIterable<ChatChunk> {
    return chat(this.#engine, this.#prompts, this.#settings.sampling, withNumbers(request), context.signal)
  }

  completions(request: CompletionRequest, context: Context): AsyncIterable<CompletionChunk> {
    return completions(this.#engine, this.#settings.sampling, request, context.signal)
  }

  embeddings(request: EmbeddingsRequest, context: Context): Promise<EmbeddingsResult> {
    const alive = () => send(undefined, 0, context.requestIds, context)
    return embeddings(this.#engine, request, alive, context.signal)
  }

  async shutdown(): Promise<void> {
    await this.#engine?.dispose()
  }

  /** A stream ends with an empty item. An error affects only its own request. */
  async #answer(request: HandlerRequest, index: number, context: Context): Promise<HandlerResponse> {
    const signal = context.requestSignal(index)
    try {
      const wanted = readCompletion(request, this.#settings.sampling)
      context.setResponseContentType(index, 'text/plain; charset=utf-8')
      const id = { [index]: context.requestIds[index]! }
      let whole = ''
      const prompt = this.#engine.promptTokens(wanted.prompt, wanted.parseSpecial)
      const sampling = { ...this.#settings.sampling, ...wanted, continues: true }
      for await (const { text } of this.#engine.generate(prompt, sampling, signal)) {
        if (!wanted.stream) whole += text
        await send(wanted.stream && text !== '' ? text : undefined, index, id, context)
      }
      return whole
    } catch (error) {
      if (signal.aborted) return ''
      return error instanceof Error ? error : new Error(String(error))
    }
  }
}

/** Sends to one request of the batch; undefined: only that it goes on. The others get nothing. */
function send(text: string | undefined, index: number, id: RequestIds, context: Context): Promise<void> {
  const items: (string | undefined)[] = []
  items[index] = text
  return sendIntermediatePredictResponse(items, id, 'Intermediate', 200, context)
}
