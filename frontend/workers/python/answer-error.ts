import { ServeError, type ErrorCode } from '../../../common/errors.ts'
import { ownValue } from '../../../common/json.ts'

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

/** For the log, after TorchServe's message: it has printed what the handler returned before. */
const MENDS: Readonly<Record<string, string>> = {
  'Invalid model predict output':
    'handle must return a list with one item per request; "Invalid return type" in a line before says what it ' +
    'returned (NoneType: a return is missing)',
  'number of batch response mismatched': 'handle must return a list with one item per request',
  'Unsupported model output data type.':
    'An item must be a str, bytes, or what json.dumps takes; the traceback before names the type',
}

/** Converts a reply to an error. */
export function answerError(status: number, message: string): ServeError {
  const key = `${status} ${message}`
  const known = ownValue(CODES, key)
  return known === undefined
    ? new ServeError('HANDLER_REJECTED', message, { status })
    : new ServeError(known, message, detailOf(message))
}

function detailOf(message: string): { detail?: string } {
  const mend = ownValue(MENDS, message)
  return mend === undefined ? {} : { detail: `${message.replace(/\.$/, '')}: ${mend}` }
}
