import type { AnswerForm } from './answer-form.ts'
import type { Answer } from './answers.ts'
import { type AnswerTask, ConvertedAnswers } from './converted-answers.ts'
import { inThread } from './in-thread.ts'
import { generateJson } from './rest-generate.ts'
import { answerJson, wireAnswer, type WireAnswer, type WireForm } from './rest-response.ts'

/** The bodies of unary responses. */
export class UnaryAnswers extends ConvertedAnswers<WireAnswer> {
  readonly #form: WireForm

  constructor(answers: AnswerForm, form: WireForm) {
    super(answers, form !== 'generate' && form.all && form.named.size === 0)
    this.#form = form
  }

  protected convert(answer: Answer): WireAnswer {
    return wireAnswer(answer, this.#form)
  }

  protected convertInThread(task: AnswerTask): Promise<WireAnswer> {
    return inThread.run('writeAnswer', { ...task, form: this.#form })
  }
}

/** The data of events. */
export class EventAnswers extends ConvertedAnswers<string | Uint8Array> {
  readonly #form: WireForm

  constructor(answers: AnswerForm, form: WireForm) {
    super(answers, false)
    this.#form = form === 'generate' ? form : ALL_JSON
  }

  protected convert(answer: Answer): string {
    return this.#form === 'generate' ? generateJson(answer) : answerJson(answer)
  }

  protected async convertInThread(task: AnswerTask): Promise<Uint8Array> {
    const { body } = await inThread.run('writeAnswer', { ...task, form: this.#form })
    return body
  }
}

/** An event has no binary tensors. */
const ALL_JSON: WireForm = { all: false, named: new Map() }
