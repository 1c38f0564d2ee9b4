import { PredictionException } from '../handler-error.ts'

/**
 * An error for clients of the OpenAI API: an HTTP status, a `code` for programs such as
 * `context_length_exceeded`, the parameter at fault, and when to try again. In all other dialects it acts as
 * a PredictionException.
 */
export class OpenAIError extends PredictionException {
  /** The response's `error.code`. */
  readonly reason: string | undefined
  /** The response's `error.param`. */
  readonly param: string | undefined

  /** Milliseconds for the header Retry-After. */
  readonly retryAfterMs: number | undefined

  constructor(
    message: string,
    status: number,
    more: { code?: string; param?: string; retryAfterMs?: number } = {},
  ) {
    super(message, status)
    this.reason = more.code
    this.param = more.param
    this.retryAfterMs = more.retryAfterMs
  }
}
