import { ServeError, type ErrorCode } from '../../../common/errors.ts'
import { ownValue } from '../../../common/own-keys.ts'

/**
 * The messages of TorchServe's worker (ts/service.py); any other message comes from a handler's
 * PredictionException.
 */
const CODES: Readonly<Record<string, ErrorCode>> = {
  '503 Prediction failed': 'HANDLER_FAILED',
  '507 Out of resources': 'OUT_OF_MEMORY',
  '503 Invalid model predict output': 'INVALID_OUTPUT',
  '503 number of batch response mismatched': 'INVALID_OUTPUT',
  '503 Unsupported model output data type.': 'INVALID_OUTPUT',
}

/** Converts a reply to an error. */
export function answerError(status: number, message: string): ServeError {
  const key = `${status} ${message}`
  const known = ownValue(CODES, key)
  return known === undefined
    ? new ServeError('HANDLER_REJECTED', message, { status })
    : new ServeError(known, message)
}
