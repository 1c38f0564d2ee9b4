import { ServeError } from '../../common/errors.ts'
import { closest } from '../../common/names.ts'
import type { ModelOperations } from './operations.ts'

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
