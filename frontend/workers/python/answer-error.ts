import { ServeError, type ErrorCode } from '../../../common/errors.ts'
import { ownValue } from '../../../common/own-keys.ts'

/** What TorchServe's worker says when something went wrong (spec 1.3); any other text is a PredictionException of the handler. */
const CODES: Readonly<Record<string, ErrorCode>> = {
  '503 Prediction failed': 'HANDLER_FAILED',
  '507 Out of resources': 'OUT_OF_MEMORY',
  '503 Invalid model predict output': 'INVALID_OUTPUT',
  '503 number of batch response mismatched': 'INVALID_OUTPUT',
  '503 Unsupported model output data type.': 'INVALID_OUTPUT',
}

/** The error of a reply. */
export function answerError(status: number, message: string): ServeError {
  const key = `${status} ${message}`
  const known = ownValue(CODES, key)
  return known === undefined
    ? new ServeError('HANDLER_REJECTED', message, { status })
    : new ServeError(known, message)
}
