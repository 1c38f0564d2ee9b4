/**
 * Throw it (or return it as one item of the answer) to fail with a status and a message of your own, which the client
 * sees. Any other error answers 503 `Prediction failed`, and only the log shows what it was.
 */
export class PredictionException extends Error {
  override readonly name = 'PredictionException'
  /** HTTP status, 400 to 599; anything else becomes 500. */
  readonly code: number

  constructor(message: string, code = 500) {
    super(message)
    this.code = code
  }
}

/** By shape, so that one from another copy of this package counts too. */
export function isPredictionException(thrown: unknown): thrown is PredictionException {
  return (
    thrown instanceof Error &&
    thrown.name === 'PredictionException' &&
    'code' in thrown &&
    typeof thrown.code === 'number'
  )
}
