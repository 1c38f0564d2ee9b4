import { ServeError } from '../../common/errors.ts'
import type { NativeMethod } from '../../common/handler-methods.ts'
import { decodeRequest, type InferRequest } from '../../common/tensors/message.ts'
import { INPUTS, type WithInputs } from '../context.ts'
import type { Context, Handler, HandlerResponse } from '../handler.ts'
import type { NativeCall } from '../loader.ts'
import { type Call, encodeFor, plainCall, tensorCall } from './call.ts'
import { formOf, joinResponses, mergeRequests, splitResponse } from './join.ts'
import { fromHandler, type RawResponse, toHandler } from './messages.ts'
import { StreamTexts } from './stream-texts.ts'
import type { InferenceHandler, InferenceRequest, InferenceResponse } from './types.ts'

/** Serves requests with `predict` and `predictStream`. */
export class TensorAdapter {
  readonly #handler: InferenceHandler

  constructor(handler: InferenceHandler) {
    this.#handler = handler
  }

  /** How the worker calls the methods that the handler has. */
  calls(): [NativeMethod, NativeCall][] {
    const predict: NativeCall = {
      alone: false,
      answer: (requests, context) => this.#answerAll(requests, tensorCall, context),
    }
    const predictStream: NativeCall = {
      alone: true,
      answer: ([request], context) => this.#stream(tensorCall(request!, 0), context),
    }
    return [
      ['predict', predict],
      ['predictStream', predictStream],
    ]
  }

  /** `handle`, for TorchServe's routes. A single request is streamed if the handler can stream. */
  readonly handle: Handler['handle'] = (requests, context) => {
    if (requests.length === 1 && this.#handler.predictStream !== undefined) {
      return this.#stream(plainCall(requests[0]!, 0), context)
    }
    return this.#answerAll(requests, plainCall, context)
  }

  async *#stream(call: Call, context: Context): AsyncGenerator<unknown[], unknown[]> {
    const payloads = payloadsOf(call, context)
    const { request } = call
    const streamed = this.#handler.predictStream?.(payloads, context)
    const responses =
      streamed === undefined ? this.#predictEach(payloads, request, context) : rawResponses(streamed, request)
    for await (const response of responses) yield [encodeFor(call, response, context)]
    return [undefined]
  }

  async *#predictEach(
    payloads: AsyncIterable<InferenceRequest>,
    request: InferRequest,
    context: Context,
  ): AsyncGenerator<RawResponse> {
    for await (const payload of payloads)
      yield fromHandler(await this.#handler.predict!(payload, context), request)
  }

  /** Requests of the same form share a call. A failure fails its own request only. */
  async #answerAll<T>(
    requests: readonly T[],
    callOf: (request: T, index: number) => Call,
    context: Context,
  ): Promise<HandlerResponse[]> {
    const items: HandlerResponse[] = requests.map(() => undefined)
    const groups = new Map<string | number, Call[]>()
    requests.forEach((request, index) => {
      try {
        const call = callOf(request, index)
        const form = this.#handler.predict === undefined ? undefined : formOf(call.request)
        const group = groups.get(form ?? index)
        if (group === undefined) groups.set(form ?? index, [call])
        else group.push(call)
      } catch (thrown) {
        items[index] = asError(thrown)
      }
    })
    await Promise.all([...groups.values()].map((group) => this.#answerGroup(group, context, items)))
    return items
  }

  async #answerGroup(group: readonly Call[], context: Context, items: HandlerResponse[]): Promise<void> {
    const responses = group.length === 1 ? undefined : await this.#predictTogether(group, context)
    await Promise.all(
      group.map(async (call, i) => {
        try {
          const response = responses?.[i] ?? (await this.#predictAlone(call.request, context))
          items[call.index] = encodeFor(call, response, context)
        } catch (thrown) {
          items[call.index] = asError(thrown)
        }
      }),
    )
  }

  /**
   * Undefined if the shared call fails or its response cannot be split. Each request is then predicted alone.
   */
  async #predictTogether(group: readonly Call[], context: Context): Promise<RawResponse[] | undefined> {
    const requests = group.map(({ request }) => request)
    const merged = mergeRequests(requests)
    try {
      const response: unknown = await this.#handler.predict!(toHandler(merged), context)
      return splitResponse(fromHandler(response, merged), requests)
    } catch (thrown) {
      context.logger.warn(
        `A batch of ${group.length} failed and is predicted one by one: ${asError(thrown).message}`,
      )
      return undefined
    }
  }

  async #predictAlone(request: InferRequest, context: Context): Promise<RawResponse> {
    const handler = this.#handler
    if (handler.predict !== undefined)
      return fromHandler(await handler.predict(toHandler(request), context), request)
    const responses = handler.predictStream!(only(toHandler(request)), context)
    return joinResponses(rawResponses(responses, request))
  }
}

/** Whether a value can become such a handler: it has `predict` or `predictStream`. */
export function isInferenceHandler(value: unknown): value is InferenceHandler {
  if (typeof value !== 'object' || value === null) return false
  const { predict, predictStream } = value as Record<string, unknown>
  return typeof predict === 'function' || typeof predictStream === 'function'
}

async function* payloadsOf({ request }: Call, context: Context): AsyncGenerator<InferenceRequest> {
  yield toHandler(request)
  const more = (context as Context & WithInputs)[INPUTS]?.()
  if (more === undefined) return
  for await (const message of more) yield toHandler(decodeRequest(message))
}

async function* rawResponses(
  responses: AsyncIterable<InferenceResponse>,
  request: InferRequest,
): AsyncGenerator<RawResponse> {
  const texts = new StreamTexts()
  for await (const response of responses) yield fromHandler(texts.next(response), request)
  const rest = texts.end()
  if (rest !== undefined) yield fromHandler(rest, request)
}

// eslint-disable-next-line @typescript-eslint/require-await -- an async iterable is what predictStream takes
async function* only(request: InferenceRequest): AsyncGenerator<InferenceRequest> {
  yield request
}

function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : ServeError.from(thrown)
}
