import { pathToFileURL } from 'node:url'
import type { ServeError } from '../../../common/errors.ts'
import { builtModule } from '../../package-info.ts'
import { ConversionThreads, INLINE_BYTES } from '../../edge/conversion-threads.ts'
import type { ReplyHead } from '../../jobs/reply-sink.ts'
import { type AnswerForm, readerOf } from './answer-form.ts'
import { type Answer, type AnswerReader, isNative } from './answers.ts'
import type { conversions } from './conversions.ts'
import { generateJson } from './rest-generate.ts'
import { answerJson, wireAnswer, type WireAnswer, type WireForm } from './rest-response.ts'

/** In TypeScript sources (tests, tsx) the thread needs a loader. */
const ENTRY = import.meta.url.endsWith('.ts')
  ? new URL('conversion-worker-from-source.mjs', import.meta.url)
  : pathToFileURL(builtModule('frontend/dialects/open-inference/conversion-worker.js'))

/** Threads that read large requests and write large answers. */
export const inThread = new ConversionThreads<typeof conversions>(ENTRY)

/** Reads the responses of one request, and writes them for the client: large ones in a thread. */
abstract class WireAnswers<Written> implements AnswerReader<Written | Promise<Written>> {
  readonly #answers: AnswerForm
  readonly #form: WireForm
  readonly #reader: AnswerReader

  constructor(answers: AnswerForm, form: WireForm) {
    this.#answers = answers
    this.#form = form
    this.#reader = readerOf(answers)
  }

  read(head: ReplyHead, body: Uint8Array): Written | Promise<Written> {
    const form = this.#form
    const isLarge = body.byteLength > INLINE_BYTES && !(isNative(head) && isRaw(form))
    if (!isLarge) return this.write(this.#reader.read(head, body), form)
    const { status, contentType, headers } = head
    const task = { body, head: { status, contentType, headers }, answers: this.#answers, form }
    return inThread.run('writeAnswer', task).then((answer) => this.written(answer))
  }

  failure(error: ServeError): ServeError {
    return this.#reader.failure(error)
  }

  protected abstract write(answer: Answer, form: WireForm): Written
  protected abstract written(answer: WireAnswer): Written
}

/** The body of a unary response. */
export class UnaryAnswers extends WireAnswers<WireAnswer> {
  protected write(answer: Answer, form: WireForm): WireAnswer {
    return wireAnswer(answer, form)
  }

  protected written(answer: WireAnswer): WireAnswer {
    return answer
  }
}

/** The data of one event. */
export class EventAnswers extends WireAnswers<string | Uint8Array> {
  constructor(answers: AnswerForm, form: WireForm) {
    super(answers, form === 'generate' ? form : ALL_JSON)
  }

  protected write(answer: Answer, form: WireForm): string {
    return form === 'generate' ? generateJson(answer) : answerJson(answer)
  }

  protected written({ body }: WireAnswer): Uint8Array {
    return body
  }
}

/** An event has no binary tensors. */
const ALL_JSON: WireForm = { all: false, named: new Map() }

/** Such an answer is only copied. */
function isRaw(form: WireForm): boolean {
  return form !== 'generate' && form.all && form.named.size === 0
}
