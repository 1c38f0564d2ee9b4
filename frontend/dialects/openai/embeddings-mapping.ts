import { ServeError } from '../../../common/errors.ts'
import { isObject, parseJson } from '../../../common/json.ts'
import { embeddingsAnswer } from '../../../common/openai/embeddings.ts'
import type { EmbeddingsRequest } from '../../../common/openai/types.ts'
import { ByteCollector } from '../../jobs/byte-collector.ts'
import type { ReplyHead, ReplySink } from '../../jobs/reply-sink.ts'
import { MAX_CHOICES } from '../../../common/openai/request.ts'
import type { OpenAICall } from './call.ts'
import { JobGroup } from './job-group.ts'
import { answerJson, failReply } from './rest-reply.ts'

/**
 * The default mapping of embeddings for handlers with `handle`: each input is a request with the text as part
 * `data`. The response is JSON: a vector, or an object with the vector as `embedding`.
 */
export function mapEmbeddings(call: OpenAICall, body: EmbeddingsRequest): void {
  const { events } = call
  const { state, reply } = call.exchange
  const texts = textsOf(body)
  const vectors: (number[] | undefined)[] = texts.map(() => undefined)
  const jobs = new JobGroup(call)
  let missing = texts.length
  const failed = (error: ServeError): void => {
    failReply(events, error)
    jobs.cancel('failed')
  }
  const done = (index: number, vector: number[]): void => {
    vectors[index] = vector
    missing -= 1
    if (missing > 0) return
    const format = body.encoding_format ?? 'float'
    const json = embeddingsAnswer({ embeddings: vectors as number[][] }, body.model, format)
    answerJson(reply, 200, Buffer.from(JSON.stringify(json)))
  }
  if (!reply.follow(jobs)) return
  texts.forEach((text, index) => {
    if (reply.ended) return
    const sink = new VectorSink(state.settings.maxResponseSize, failed, (vector) => done(index, vector))
    jobs.submit([{ name: 'data', data: Buffer.from(text) }], sink)
  })
}

function textsOf({ input }: EmbeddingsRequest): string[] {
  const list: unknown[] = Array.isArray(input) ? input : [input]
  if (list.length > MAX_CHOICES)
    throw new ServeError('INVALID_ARGUMENT', `This model accepts at most ${MAX_CHOICES} inputs`, {
      param: 'input',
    })
  if (list.every((one) => typeof one === 'string')) return list
  throw new ServeError('INVALID_ARGUMENT', 'This model accepts strings, not token ids', { param: 'input' })
}

class VectorSink implements ReplySink {
  readonly #bytes: ByteCollector
  readonly #failed: (error: ServeError) => void
  readonly #done: (vector: number[]) => void

  constructor(limit: number, failed: (error: ServeError) => void, done: (vector: number[]) => void) {
    this.#bytes = new ByteCollector(limit)
    this.#failed = failed
    this.#done = done
  }

  whole(_head: ReplyHead, body: Uint8Array): void {
    this.write(body, 0, body.byteLength)
    this.close()
  }

  open(): void {
    // The items follow.
  }

  write(chunk: Uint8Array, from: number, to: number): boolean {
    if (!this.#bytes.add(chunk.subarray(from, to)))
      throw new ServeError('RESPONSE_TOO_LARGE', 'The response exceeds max_response_size')
    return true
  }

  close(): void {
    const vector = vectorOf(this.#bytes.bytes().toString())
    if (vector === undefined)
      throw new ServeError('INVALID_OUTPUT', 'The response of the model must be a vector')
    this.#done(vector)
  }

  fail(error: ServeError): void {
    this.#failed(error)
  }
}

function vectorOf(text: string): number[] | undefined {
  const value = parseJson(text)
  const inner = isObject(value) && 'embedding' in value ? value['embedding'] : value
  const isVector = Array.isArray(inner) && inner.every((n) => typeof n === 'number')
  return isVector ? inner : undefined
}
