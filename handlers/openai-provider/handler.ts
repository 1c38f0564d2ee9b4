import type {
  ChatChunk,
  ChatCompletionRequest,
  Completion,
  CompletionChunk,
  CompletionRequest,
  EmbeddingsRequest,
  EmbeddingsResult,
} from '../../common/openai/types.ts'
import type { Context } from '../../backend-worker/handler.ts'
import { Provider } from './provider.ts'
import { readProvider } from './settings.ts'

type Json = Record<string, unknown>

/**
 * The OpenAI runtime: a model served by a provider with the OpenAI API (docs/openai.md). Forwards requests
 * unchanged except for the model's name, and forwards answers as they arrive. A client that leaves cancels
 * the provider's request too.
 */
export class OpenAIRuntime {
  #provider!: Provider

  initialize(context: Context): void {
    const settings = readProvider(context)
    for (const warning of settings.warnings) context.logger.warn(warning)
    this.#provider = new Provider(settings)
    context.logger.info(
      `Loaded: requests go to ${settings.baseUrl}${settings.key === undefined ? ', without a key' : ''}`,
    )
  }

  chatCompletions(
    request: ChatCompletionRequest,
    context: Context,
  ): AsyncIterable<ChatChunk> | Promise<Completion> {
    return this.#generate('/chat/completions', request, context)
  }

  completions(
    request: CompletionRequest,
    context: Context,
  ): AsyncIterable<CompletionChunk> | Promise<Completion> {
    return this.#generate('/completions', request, context)
  }

  async embeddings(request: EmbeddingsRequest, { signal }: Context): Promise<EmbeddingsResult> {
    return (await this.#provider.ask('/embeddings', request, signal)) as EmbeddingsResult
  }

  #generate<Chunk>(
    path: '/chat/completions' | '/completions',
    body: Json,
    { signal }: Context,
  ): AsyncIterable<Chunk> | Promise<Completion> {
    if (body['stream'] === true) return this.#provider.stream(path, body, signal) as AsyncIterable<Chunk>
    return this.#provider.ask(path, body, signal) as Promise<Completion>
  }
}

export default OpenAIRuntime
