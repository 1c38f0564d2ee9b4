import { ServeError } from '../../common/errors.ts'
import { closest } from '../config/edit-distance.ts'

/** Messages repeat this many characters of a client's text, which may be megabytes long. */
const MAX_TOLD = 200

/** The part of a client's text that a message repeats. */
export function told(text: string): string {
  return text.slice(0, MAX_TOLD)
}

const NOT_FOUND = 'Model not found: '

/** No model has this name, or none that the caller may know of: both get the same answer. */
export function modelNotFound(name: string): ServeError {
  return new ServeError('MODEL_NOT_FOUND', `${NOT_FOUND}${told(name)}`)
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
 * What a client of {@link modelNotFound} may have meant: a name with `_` where it wrote another sign, as
 * models from folders have it, or one that is spelt nearly so.
 * @param names those that the client may know
 */
export function nameMeant({ code, message }: ServeError, names: readonly string[]): string | undefined {
  if (code !== 'MODEL_NOT_FOUND' || !message.startsWith(NOT_FOUND)) return undefined
  const asked = message.slice(NOT_FOUND.length)
  const plain = asked.replace(/\W/g, '_').toLowerCase()
  return names.find((name) => name.toLowerCase() === plain) ?? closest(asked, names) ?? closest(plain, names)
}
