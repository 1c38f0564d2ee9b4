import type { ServeError } from '../../../common/errors.ts'
import { INLINE_BYTES } from '../../edge/conversion-threads.ts'
import type { ReplyHead } from '../../jobs/reply-sink.ts'
import { type AnswerForm, readerOf } from './answer-form.ts'
import { type Answer, type AnswerReader, isNative } from './answers.ts'

/** A response of a handler, and how it is read: plain data for a thread. */
export interface AnswerTask {
  readonly body: Uint8Array
  readonly head: ReplyHead
  readonly answers: AnswerForm
}

/**
 * Reads the responses of one request and makes of each what its protocol sends: of large ones in a thread. A
 * promise rejects as `read` throws, or with the errors of the thread.
 */
export abstract class ConvertedAnswers<Sent> implements AnswerReader<Sent | Promise<Sent>> {
  readonly #answers: AnswerForm
  readonly #reader: AnswerReader
  readonly #copiesTensors: boolean

  /** @param copiesTensors whether tensors of a handler are only copied, which needs no thread */
  constructor(answers: AnswerForm, copiesTensors: boolean) {
    this.#answers = answers
    this.#reader = readerOf(answers)
    this.#copiesTensors = copiesTensors
  }

  read(head: ReplyHead, body: Uint8Array): Sent | Promise<Sent> {
    if (body.byteLength <= INLINE_BYTES || (this.#copiesTensors && isNative(head)))
      return this.convert(this.#reader.read(head, body))
    const { status, contentType, headers } = head
    return this.convertInThread({ body, head: { status, contentType, headers }, answers: this.#answers })
  }

  failure(error: ServeError): ServeError {
    return this.#reader.failure(error)
  }

  protected abstract convert(answer: Answer): Sent
  protected abstract convertInThread(task: AnswerTask): Promise<Sent>
}
