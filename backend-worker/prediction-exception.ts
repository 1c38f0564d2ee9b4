/**
 * Throw it, or return it as an item, to fail a request with your own status and message, which the client
 * sees. Any other error answers 503 `Prediction failed`, and only the log contains its message.
 */
export class PredictionException extends Error {
  override readonly name = 'PredictionException'
  /** HTTP status, 400 to 599; any other value becomes 500. Default 500. */
  readonly code: number

  constructor(message: string, code = 500) {
    super(message)
    this.code = code
  }
}

/** Checks the shape, so that an instance from another copy of this package is recognized. */
export function isPredictionException(thrown: unknown): thrown is PredictionException {
  return (
    thrown instanceof Error &&
    thrown.name === 'PredictionException' &&
    'code' in thrown &&
    typeof thrown.code === 'number'
  )
}
