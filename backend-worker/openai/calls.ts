import { ServeError } from '../../common/errors.ts'
import { exactJson, parseJsonBytes } from '../../common/exact-json.ts'
import type { NativeMethod } from '../../common/handler-methods.ts'
import type { PredictRequest } from '../../protocol/messages.ts'
import { ChatStream, CompletionStream, type StreamHead } from '../../common/openai/chunks.ts'
import { Collector } from '../../common/openai/collect.ts'
import {
  type ChatChunk,
  type ChatCompletionRequest,
  type ChatDelta,
  type ChatLogprobs,
  type Completion,
  type CompletionChunk,
  type CompletionLogprobs,
  type CompletionRequest,
  embeddingsAnswer,
  type EmbeddingsRequest,
  type FinishReason,
  type SamplingOptions,
  type ToolCall,
} from '../../common/openai/types.ts'
import type { Context, Handler } from '../handler.ts'
import { isAsyncIterable, sendIntermediatePredictResponse } from '../intermediate.ts'
import type { NativeCall } from '../loader.ts'

/** The methods of the API; each is optional. */
export type OpenAIHandler = Pick<Handler, 'chatCompletions' | 'completions' | 'embeddings'>

type Answer<T> = AsyncIterable<T> | Completion | Promise<Completion>

/** How the worker calls the OpenAI API methods of a handler. */
export function openaiCalls(handler: OpenAIHandler): [NativeMethod, NativeCall][] {
  const calls: [NativeMethod, NativeCall][] = []
  const { chatCompletions, completions, embeddings } = handler
  if (chatCompletions !== undefined) calls.push(['chatCompletions', alone(handler, answerChat)])
  if (completions !== undefined) calls.push(['completions', alone(handler, answerCompletion)])
  if (embeddings !== undefined) calls.push(['embeddings', alone(handler, answerEmbeddings)])
  return calls
}

/** The frontend has validated the body for this method. */
function alone(
  handler: OpenAIHandler,
  answer: (handler: OpenAIHandler, body: never, context: Context) => unknown,
): NativeCall {
  return {
    alone: true,
    answer: ([request], context) => answer(handler, bodyOf(request!) as never, context),
  }
}

async function answerEmbeddings(
  handler: OpenAIHandler,
  body: EmbeddingsRequest,
  context: Context,
): Promise<string[]> {
  const result = await handler.embeddings!(body, context)
  return [exactJson(embeddingsAnswer(result, body.model, body.encoding_format ?? 'float'))]
}

/** A list with the complete response, or a stream with one chunk per item. */
function answerChat(handler: OpenAIHandler, body: ChatCompletionRequest, context: Context): unknown {
  const answer = handler.chatCompletions!(body, context)
  const head = streamHead('chatcmpl', body, context)
  if (body.stream === true) return streamed(chunksOf(answer, chatChunks), new ChatStream(head))
  const collector = new Collector(head)
  return collected(
    answer,
    (chunk) => collector.addChat(chunk),
    () => collector.chat(),
    head,
    context,
  )
}

function answerCompletion(handler: OpenAIHandler, body: CompletionRequest, context: Context): unknown {
  const answer = handler.completions!(body, context)
  const head = streamHead('cmpl', body, context)
  if (body.stream === true) return streamed(chunksOf(answer, completionChunks), new CompletionStream(head))
  const collector = new Collector(head)
  return collected(
    answer,
    (chunk) => collector.addText(chunk),
    () => collector.text(),
    head,
    context,
  )
}

function streamHead(prefix: string, body: SamplingOptions, context: Context): StreamHead {
  return {
    id: `${prefix}-${context.requestIds[0]!}`,
    created: Math.floor(Date.now() / 1000),
    model: body.model,
    includeUsage: body.stream_options?.include_usage === true,
  }
}

async function* chunksOf<T>(answer: Answer<T>, parts: (whole: Completion) => T[]): AsyncGenerator<T> {
  if (isAsyncIterable(answer)) yield* answer as AsyncIterable<T>
  else yield* parts(await answer)
}

async function* streamed<T>(
  chunks: AsyncIterable<T>,
  stream: { next(chunk: T): T[]; end(): T[] },
): AsyncGenerator<[string | undefined]> {
  for await (const chunk of chunks) {
    const complete = stream.next(chunk)
    if (complete.length === 0) yield [undefined]
    for (const each of complete) yield [exactJson(each)]
  }
  for (const last of stream.end()) yield [exactJson(last)]
}

async function collected<T>(
  answer: Answer<T>,
  add: (chunk: T) => void,
  whole: () => Completion,
  { id, created, model }: StreamHead,
  context: Context,
): Promise<string[]> {
  if (!isAsyncIterable(answer)) return [wellFormedJson({ id, created, model, ...(await answer) })]
  for await (const chunk of answer as AsyncIterable<T>) {
    add(chunk)
    await sendIntermediatePredictResponse([undefined], context.requestIds, 'Alive', 200, context)
  }
  return [wellFormedJson(whole())]
}

/** JSON in which half a character is U+FFFD; other languages refuse texts with such halves. */
function wellFormedJson(value: unknown): string {
  const json = exactJson(value)
  if (!json.includes('\\ud')) return json
  return json.replaceAll(/\\(?:u[0-9a-f]{4}|.)/g, (escape) => (escape.startsWith('\\ud') ? '\ufffd' : escape))
}

function bodyOf(request: PredictRequest): unknown {
  const part = request.parts[0]
  if (part === undefined) throw new ServeError('PROTOCOL', 'A request of the OpenAI API must have a body')
  return parseJsonBytes(part.data)
}

/** A complete chat completion as stream chunks, for handlers that do not stream. */
function chatChunks({ choices, ...whole }: Completion): ChatChunk[] {
  return choices.map((choice, place) => {
    const { tool_calls: calls, ...delta } = (choice['message'] ?? {}) as ChatDelta & {
      tool_calls?: ToolCall[]
    }
    const made =
      calls === undefined ? delta : { ...delta, tool_calls: calls.map((call, i) => ({ ...call, index: i })) }
    return {
      ...whole,
      object: 'chat.completion.chunk',
      choices: [
        {
          index: Number(choice['index'] ?? place),
          delta: { role: 'assistant', ...made },
          logprobs: choice['logprobs'] as ChatLogprobs | null,
          finish_reason: (choice['finish_reason'] ?? 'stop') as FinishReason,
        },
      ],
    }
  })
}

/** The same for a legacy completion. */
function completionChunks({ choices, ...whole }: Completion): CompletionChunk[] {
  return choices.map((choice, place) => ({
    ...whole,
    choices: [
      {
        index: Number(choice['index'] ?? place),
        text: typeof choice['text'] === 'string' ? choice['text'] : '',
        logprobs: choice['logprobs'] as CompletionLogprobs | null,
        finish_reason: (choice['finish_reason'] ?? 'stop') as FinishReason,
      },
    ],
  }))
}
