import { ServeError } from '../../protocol/errors.ts'

/** Form fields or parts of one request. More are refused: each costs far more memory than it has bytes on the wire. */
export const MAX_PARTS = 1_024

export function tooManyParts(): ServeError {
  return new ServeError('INVALID_ARGUMENT', `A form may have at most ${MAX_PARTS} fields.`)
}
