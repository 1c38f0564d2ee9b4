import { type ErrorCode, ServeError } from '../../common/errors.ts'
import { closest } from '../../common/names.ts'
import type { ModelOperations } from './operations.ts'
import type { Job } from '../jobs/job.ts'
import { randomBytes } from 'node:crypto'

/** Messages repeat this many characters of a client's text, which may be megabytes long. */
const MAX_TOLD = 200

/** The part of a client's text that a message repeats. */
export function told(text: string): string {
  return text.slice(0, MAX_TOLD)
}

/** No model has this name, or none that the caller may know of: both get the same answer. */
export function modelNotFound(name: string): ServeError {
  const absent = told(name)
  return new ServeError('MODEL_NOT_FOUND', `Model not found: ${absent}`, { absent })
}

const RETRY_AFTER_MS = 1_000

/** Nobody can say yet that a model is not there. */
export function stillLoading(): ServeError {
  const message = 'The server is still loading its models. Retry later.'
  return new ServeError('MODEL_NOT_READY', message, { retryAfterMs: RETRY_AFTER_MS })
}

/** The same for a name that is not in the model store either. */
export function storedModelNotFound(name: string): ServeError {
  return new ServeError('MODEL_NOT_FOUND', `Model ${name} not found`)
}

/** The same for a workflow. */
export function workflowNotFound(name: string): ServeError {
  return new ServeError('WORKFLOW_NOT_FOUND', `Workflow not found: ${told(name)}`)
}

/**
 * What a client of {@link modelNotFound} may have meant; undefined for other errors, and without a near name.
 * @param models those that the client may use
 */
export function modelMeant(
  { code, absent }: ServeError,
  models: Pick<ModelOperations, 'list'>,
): string | undefined {
  if (code !== 'MODEL_NOT_FOUND' || absent === undefined) return undefined
  return nameMeant(
    absent,
    models.list().models.map(({ modelName }) => modelName),
  )
}

/** An error of gRPC, whose clients show only the message: it ends with the name that may be meant. */
export function withModelMeant(error: ServeError, models: Pick<ModelOperations, 'list'>): ServeError {
  const meant = modelMeant(error, models)
  if (meant === undefined) return error
  return new ServeError(error.code, `${error.message}; did you mean ${meant}?`, { cause: error })
}

/** A name with other letter case, or other signs between its words, or one that is spelt nearly so. */
function nameMeant(asked: string, names: readonly string[]): string | undefined {
  const plain = plainName(asked)
  return names.find((name) => plainName(name) === plain) ?? closest(asked, names) ?? closest(plain, names)
}

function plainName(name: string): string {
  return name.replace(/\W/g, '_').toLowerCase()
}

/** What a client gets from a model without workers: TorchServe's sentence, stray quote included. */
export function noWorker(modelName: string, { request: { modelVersion, method } }: Job): ServeError {
  if (method === 'describe') {
    return new ServeError(
      'NO_WORKER',
      `Model "${modelName}" has no worker to serve describe request. Please use scale workers API to add workers.`,
    )
  }
  const version = modelVersion === undefined ? '' : ` Version ${modelVersion}"`
  return new ServeError(
    'NO_WORKER',
    `Model "${modelName}"${version} has no worker to serve inference request. Please use scale workers API to add ` +
      'workers. If this is a sequence inference, please check if it is closed, or expired; or exceeds ' +
      'maxSequenceJobQueueSize',
  )
}

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
