import type { AnswerForm } from './answer-form.ts'
import type { Answer } from './answers.ts'
import { type AnswerTask, ConvertedAnswers } from './converted-answers.ts'
import type { ModelInferResponse } from './grpc-messages.ts'
import { inferResponse } from './grpc-response.ts'
import { inThread } from './in-thread.ts'

/** The messages of responses. */
export class MessageAnswers extends ConvertedAnswers<ModelInferResponse> {
  readonly #raw: boolean

  /** `raw`: the client's request was. */
  constructor(answers: AnswerForm, raw: boolean) {
    super(answers, true)
    this.#raw = raw
  }

  protected convert(answer: Answer): ModelInferResponse {
    return inferResponse(answer, this.#raw)
  }

  protected convertInThread(task: AnswerTask): Promise<ModelInferResponse> {
    return inThread.run('answerMessage', { ...task, raw: this.#raw })
  }
}
