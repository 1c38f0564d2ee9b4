import { randomBytes } from 'node:crypto'
import { type ErrorCode, ServeError } from '../../common/errors.ts'

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

const PUBLIC_CAUSES: ReadonlyMap<ErrorCode, string> = new Map([
  ['CONFLICT', 'its name and version are taken'],
  ['DEPENDENCIES_FAILED', 'its packages could not be installed'],
  ['DOWNLOAD_FAILED', 'its archive could not be downloaded'],
  ['INVALID_ARCHIVE', 'its archive was refused'],
  ['INVALID_ARGUMENT', 'its settings are not valid'],
  ['INVALID_MODEL', 'it has no valid handler'],
  ['MODEL_NOT_FOUND', 'its archive is missing'],
  ['NO_DEVICE', 'it needs more GPUs than there are'],
  ['UNTRUSTED_ARCHIVE', 'its archive was refused'],
])

/** The class of an error that kept a model from being loaded. */
export function publicCauseOf({ code, publicCause }: ServeError): string {
  if (code === 'OUT_OF_MEMORY') return 'out of memory while it loaded'
  return publicCause ?? PUBLIC_CAUSES.get(code) ?? 'its worker could not be started'
}
