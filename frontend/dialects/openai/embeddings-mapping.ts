import { ServeError } from '../../../common/errors.ts'
import { isObject, parseJson } from '../../../common/json.ts'
import { embeddingsAnswer, type EmbeddingsRequest } from '../../../common/openai/types.ts'
import { asBuffer } from '../../../common/tensors/bytes.ts'
import { MAX_CHOICES } from '../../../common/openai/request.ts'
import type { ReplyHead } from '../../jobs/reply-sink.ts'
import { JoinedReply } from '../joined-reply.ts'
import type { EventStream } from '../../edge/http/sse.ts'
import { type CommonRequest, JobGroup } from './job-group.ts'
import { answerJson } from './rest-reply.ts'

/**
 * The default mapping of embeddings for handlers with `handle`: each input is a request with the text as part
 * `data`. The response is JSON: a vector, or an object with the vector as `embedding`.
 */
export function mapEmbeddings(events: EventStream, common: CommonRequest, body: EmbeddingsRequest): void {
  const { call } = events
  const { state, reply } = call
  const texts = textsOf(body)
  const vectors: (number[] | undefined)[] = texts.map(() => undefined)
  const jobs = new JobGroup(call, common)
  let missing = texts.length
  const failed = (error: ServeError): void => {
    call.fail(error)
    jobs.cancel('failed')
  }
  const done = (index: number, vector: number[]): void => {
    vectors[index] = vector
    missing -= 1
    if (missing > 0) return
    const format = body.encoding_format ?? 'float'
    const json = embeddingsAnswer({ embeddings: vectors as number[][] }, body.model, format)
    answerJson(call, 200, Buffer.from(JSON.stringify(json)))
  }
  if (!reply.follow(jobs)) return
  texts.forEach((text, index) => {
    if (reply.ended) return
    const target = {
      answer: (_head: ReplyHead, body: Uint8Array) => done(index, vectorOf(body)),
      fail: failed,
    }
    const { maxResponseSize } = state.settings
    const sink = new JoinedReply(target, maxResponseSize, () => 'The response exceeds max_response_size')
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

function vectorOf(body: Uint8Array): number[] {
  const value = parseJson(asBuffer(body).toString())
  const inner = isObject(value) && 'embedding' in value ? value['embedding'] : value
  if (Array.isArray(inner) && inner.every((n) => typeof n === 'number')) return inner
  throw new ServeError('INVALID_OUTPUT', 'The response of the model must be a vector')
}
