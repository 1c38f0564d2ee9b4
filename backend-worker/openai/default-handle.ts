import { tryParseJson } from '../../common/exact-json.ts'
import { isObject } from '../../common/json.ts'
import { Collector } from '../../common/openai/collect.ts'
import type {
  ChatChunk,
  ChatCompletionRequest,
  CompletionChunk,
  CompletionRequest,
  EmbeddingsRequest,
} from '../../common/openai/types.ts'
import type { Context, Handler, HandlerRequest, HandlerResponse } from '../handler.ts'
import { isAsyncIterable, sendIntermediatePredictResponse } from '../intermediate.ts'
import { PredictionException } from '../handler-error.ts'
import type { OpenAIHandler } from './calls.ts'

type Fields = Record<string, unknown>

/**
 * `handle` for a handler that has only OpenAI API methods, so that TorchServe's routes work too
 * (docs/openai.md). The body is a request of that API with `messages`, `prompt` or `input`. The response is
 * text, one item per chunk, and one JSON item with what else the choices have; embeddings are JSON.
 */
export function handleByOpenAI(handler: OpenAIHandler): Handler['handle'] {
  return (requests, context) =>
    Promise.all(requests.map((request, index) => answer(handler, request, index, context)))
}

async function answer(
  handler: OpenAIHandler,
  request: HandlerRequest,
  index: number,
  context: Context,
): Promise<HandlerResponse> {
  try {
    const fields = fieldsOf(request, context)
    if (fields === undefined) throw refusal(handler)
    return await texts(handler, fields, index, context)
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
}

async function texts(
  handler: OpenAIHandler,
  fields: Fields,
  index: number,
  context: Context,
): Promise<HandlerResponse> {
  const chunks = call(handler, fields, context)
  if (!isAsyncIterable(chunks)) return chunks
  const id = { [index]: context.requestIds[index]! }
  const signal = context.requestSignal(index)
  const rest = new Rest()
  for await (const chunk of chunks as AsyncIterable<ChatChunk | CompletionChunk>) {
    if (signal.aborted) return ''
    const items: (string | undefined)[] = []
    items[index] = rest.takeText(chunk) || undefined
    await sendIntermediatePredictResponse(items, id, 'Intermediate', 200, context)
  }
  return rest.item()
}

function call(handler: OpenAIHandler, fields: Fields, context: Context): unknown {
  if (fields['messages'] !== undefined && handler.chatCompletions !== undefined)
    return handler.chatCompletions(fields as unknown as ChatCompletionRequest, context)
  if (fields['prompt'] !== undefined && handler.completions !== undefined)
    return handler.completions(fields as unknown as CompletionRequest, context)
  if (fields['input'] !== undefined && handler.embeddings !== undefined)
    return handler.embeddings(fields as unknown as EmbeddingsRequest, context)
  throw refusal(handler)
}

/** A request for a method that the handler lacks gets an error that lists the accepted fields. */
function refusal({ chatCompletions, completions, embeddings }: OpenAIHandler): PredictionException {
  const fields = [chatCompletions && 'messages', completions && 'prompt', embeddings && 'input']
  return new PredictionException(
    `This model takes a JSON object with ${fields.filter(Boolean).join(' or ')}`,
    400,
  )
}

/** Undefined if the body is not a JSON object. */
function fieldsOf(request: HandlerRequest, context: Context): Fields | undefined {
  const body = request['data'] ?? request['body']
  const value = body instanceof Uint8Array ? tryParseJson(body) : body
  return isObject(value) ? { model: context.modelName, ...value } : undefined
}

/** Collects what the chunks of one response have besides the text of the first choice. */
class Rest {
  readonly #collector = new Collector({ id: '', created: 0, model: '', includeUsage: false })
  #isChat = false

  /** @returns the text of the first choice in this chunk */
  takeText({ choices }: ChatChunk | CompletionChunk): string {
    let text = ''
    for (const choice of choices) {
      const isFirst = choice.index === 0
      if ('text' in choice) {
        if (isFirst) text += choice.text
        this.#collector.addText({ choices: [isFirst ? { ...choice, text: '' } : choice] })
        continue
      }
      const { content, ...delta } = choice.delta
      this.#isChat = true
      if (isFirst) text += content ?? ''
      this.#collector.addChat({ choices: [isFirst ? { ...choice, delta } : choice] })
    }
    return text
  }

  /** Tool calls and other fields of the first message, log probabilities, other choices; '' without any. */
  item(): HandlerResponse {
    const completion = this.#isChat ? this.#collector.chat() : this.#collector.text()
    const [first = {}, ...choices] = completion.choices
    const { role: _role, content: _content, ...fields } = (first['message'] ?? {}) as Fields
    const all = { ...fields, logprobs: first['logprobs'], choices: choices.length > 0 ? choices : null }
    const present = Object.entries(all).filter(([, value]) => value != null)
    return present.length === 0 ? '' : Object.fromEntries(present)
  }
}
