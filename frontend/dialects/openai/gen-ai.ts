import { isObject, parseJson } from '../../../common/json.ts'
import type { Operation } from '../../../common/openai/types.ts'
import type { OpenAIRequest } from '../../../common/openai/request.ts'
import { EventStream } from '../../edge/http/sse.ts'
import type { RequestSpan, SpanAttributes } from '../../edge/http/request-trace.ts'

/**
 * What OpenTelemetry calls the operations.
 * https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/
 */
const OPERATION_NAMES: Readonly<Record<Operation, string>> = {
  chat: 'chat',
  completions: 'text_completion',
  embeddings: 'embeddings',
}

const MAX_FINISH_REASONS = 128

/** What the conventions for generative AI say of a request. */
export function requestAttributes({ operation, body }: OpenAIRequest): SpanAttributes {
  const { model, ...options } = body
  const { stop } = options
  return [
    'gen_ai.operation.name',
    OPERATION_NAMES[operation],
    'gen_ai.provider.name',
    'torchserve_ts',
    'gen_ai.request.model',
    model,
    'gen_ai.request.max_tokens',
    numberOf(options['max_completion_tokens'] ?? options['max_tokens']),
    'gen_ai.request.temperature',
    numberOf(options['temperature']),
    'gen_ai.request.top_p',
    numberOf(options['top_p']),
    'gen_ai.request.presence_penalty',
    numberOf(options['presence_penalty']),
    'gen_ai.request.frequency_penalty',
    numberOf(options['frequency_penalty']),
    'gen_ai.request.seed',
    numberOf(options['seed']),
    'gen_ai.request.choice.count',
    numberOf(options['n']),
    'gen_ai.request.stop_sequences',
    typeof stop === 'string' ? [stop] : textsOf(stop),
    'gen_ai.output.type',
    operation === 'embeddings' ? undefined : 'text',
  ]
}

/** Collects what they say of a response, from its body or from the events of its stream. */
export class ResponseFacts {
  #id: string | undefined
  #model: string | undefined
  #inputTokens: number | undefined
  #outputTokens: number | undefined
  readonly #finishReasons: string[] = []

  /** JSON of a response, or of a chunk; anything else is skipped. */
  add(json: string): void {
    const value = parseJson(json)
    if (!isObject(value)) return
    const { id, model, usage, choices } = value
    if (typeof id === 'string') this.#id = id
    if (typeof model === 'string') this.#model = model
    if (isObject(usage)) {
      this.#inputTokens = numberOf(usage['prompt_tokens']) ?? this.#inputTokens
      this.#outputTokens = numberOf(usage['completion_tokens']) ?? this.#outputTokens
    }
    for (const choice of Array.isArray(choices) ? (choices as unknown[]) : []) {
      const reason = isObject(choice) ? choice['finish_reason'] : undefined
      if (typeof reason === 'string' && this.#finishReasons.length < MAX_FINISH_REASONS)
        this.#finishReasons.push(reason)
    }
  }

  get attributes(): SpanAttributes {
    return [
      'gen_ai.response.id',
      this.#id,
      'gen_ai.response.model',
      this.#model,
      'gen_ai.response.finish_reasons',
      this.#finishReasons.length === 0 ? undefined : this.#finishReasons,
      'gen_ai.usage.input_tokens',
      this.#inputTokens,
      'gen_ai.usage.output_tokens',
      this.#outputTokens,
    ]
  }
}

/** A stream whose events tell its span about the response. */
export class TracedEvents extends EventStream {
  readonly #span: RequestSpan
  readonly #facts = new ResponseFacts()

  constructor(span: RequestSpan, ...stream: ConstructorParameters<typeof EventStream>) {
    super(...stream)
    this.#span = span
  }

  override event(data: string): boolean {
    this.#facts.add(data)
    return super.event(data)
  }

  override eventBytes(chunk: Uint8Array, from: number, to: number): boolean {
    this.#facts.add(Buffer.from(chunk.buffer, chunk.byteOffset + from, to - from).toString())
    return super.eventBytes(chunk, from, to)
  }

  override end(): void {
    this.#span.set(this.#facts.attributes)
    super.end()
  }
}

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}

function textsOf(value: unknown): string[] | undefined {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : undefined
}
