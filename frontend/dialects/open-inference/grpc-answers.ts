import type { ServeError } from '../../../common/errors.ts'
import { INLINE_BYTES } from '../../edge/conversion-threads.ts'
import type { ReplyHead } from '../../jobs/reply-sink.ts'
import { type AnswerForm, readerOf } from './answer-form.ts'
import { type AnswerReader, isNative } from './answers.ts'
import { answerMessage, type MessageForm } from './conversions.ts'
import type { ModelInferResponse } from './grpc-messages.ts'
import { inThread } from './in-thread.ts'

/** Reads the responses of one request and makes them messages: large ones in a thread, as over REST. */
export class MessageAnswers implements AnswerReader<ModelInferResponse | Promise<ModelInferResponse>> {
  readonly #answers: AnswerForm
  readonly #raw: boolean
  readonly #reader: AnswerReader

  /** `raw`: the client's request was. */
  constructor(answers: AnswerForm, raw: boolean) {
    this.#answers = answers
    this.#raw = raw
    this.#reader = readerOf(answers)
  }

  read(head: ReplyHead, body: Uint8Array): ModelInferResponse | Promise<ModelInferResponse> {
    return messageFrom(head, body, { answers: this.#answers, raw: this.#raw })
  }

  failure(error: ServeError): ServeError {
    return this.#reader.failure(error)
  }
}

/**
 * The message of one response. Tensors are only copied, so what a handler gave as tensors needs no thread.
 * @throws ServeError as AnswerReader.read; a promise rejects with these, and those of the thread
 */
export function messageFrom(
  head: ReplyHead,
  body: Uint8Array,
  form: MessageForm,
): ModelInferResponse | Promise<ModelInferResponse> {
  if (body.byteLength <= INLINE_BYTES || isNative(head)) return answerMessage({ body, head, ...form })
  const { status, contentType, headers } = head
  return inThread.run('answerMessage', { body, head: { status, contentType, headers }, ...form })
}
