import { PredictionException } from '../prediction-exception.ts'

/**
 * A failure as the OpenAI API says it (spec 5.7): status, and for programs a `code` such as `context_length_exceeded` and the
 * parameter at fault. In every other dialect it counts as a PredictionException.
 */
export class OpenAIError extends PredictionException {
  /** `error.code` of the answer. */
  readonly reason: string | undefined
  /** `error.param` of the answer. */
  readonly param: string | undefined

  constructor(message: string, status: number, more: { code?: string; param?: string } = {}) {
    super(message, status)
    this.reason = more.code
    this.param = more.param
  }
}
