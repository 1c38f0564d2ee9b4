import { isObject, parseJson } from '../../common/json.ts'
import type {
  ChatChunk,
  ChatCompletionRequest,
  CompletionChunk,
  CompletionRequest,
  EmbeddingsRequest,
} from '../../common/openai/types.ts'
import type { Context, Handler, HandlerRequest, HandlerResponse } from '../handler.ts'
import { isAsyncIterable } from '../iterate.ts'
import { sendIntermediatePredictResponse } from '../intermediate.ts'
import { PredictionException } from '../prediction-exception.ts'
import type { OpenAIHandler } from './calls.ts'

type Fields = Record<string, unknown>

/**
 * `handle` for a handler that has only OpenAI API methods, so that TorchServe's routes work too
 * (docs/openai.md). The body is a request of that API with `messages`, `prompt` or `input`. The response is
 * text, one item per chunk; embeddings are JSON.
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
  for await (const chunk of chunks as AsyncIterable<ChatChunk | CompletionChunk>) {
    if (signal.aborted) return ''
    const items: string[] = []
    items[index] = textOf(chunk)
    if (items[index] !== '') await sendIntermediatePredictResponse(items, id, 'Intermediate', 200, context)
  }
  return ''
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
  const value = body instanceof Uint8Array ? parseJson(Buffer.from(body).toString()) : body
  return isObject(value) ? { model: context.modelName, ...value } : undefined
}

function textOf({ choices }: ChatChunk | CompletionChunk): string {
  const first = choices.find(({ index }) => index === 0)
  if (first === undefined) return ''
  return 'text' in first ? first.text : (first.delta.content ?? '')
}
