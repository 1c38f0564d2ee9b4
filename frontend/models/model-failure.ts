import { randomBytes } from 'node:crypto'
import { ServeError } from '../../common/errors.ts'

/** Why a worker cannot load its handler, or is not started again. */
export interface ModelFailure {
  /** Also in the line of the log that has the whole cause. */
  readonly id: string
  readonly at: Date
  /** The message of the cause, for the operator: it may contain paths and what the handler said. */
  readonly reason: string
  /** The class of the cause, which strangers may read. */
  readonly publicCause: string
}

/** A failure with an id of its own. @param publicCause default: what the error says of itself */
export function newFailure(error: ServeError, publicCause = publicCauseOf(error)): ModelFailure {
  return { id: randomBytes(6).toString('hex'), at: new Date(), reason: error.message, publicCause }
}

/** What the clients of a model get that no worker can load. */
export function modelFailed(modelName: string, { id, publicCause }: ModelFailure): ServeError {
  return new ServeError(
    'MODEL_FAILED',
    `Model "${modelName}" cannot serve: ${publicCause}. The server's log has the whole cause under the id ${id}.`,
  )
}

/** The class of an error that kept a model from being loaded. */
export function publicCauseOf({ code, publicCause }: ServeError): string {
  if (code === 'OUT_OF_MEMORY') return 'out of memory while it loaded'
  if (code === 'INVALID_MODEL') return 'it has no valid handler'
  if (code === 'INVALID_ARCHIVE' || code === 'UNTRUSTED_ARCHIVE') return 'its archive was refused'
  return publicCause ?? 'its worker could not be started'
}
