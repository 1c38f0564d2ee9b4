import { ServeError } from '../../common/errors.ts'

/** Messages repeat this many characters of a client's text, which may be megabytes long. */
const MAX_TOLD = 200

/** The part of a client's text that a message repeats. */
export function told(text: string): string {
  return text.slice(0, MAX_TOLD)
}

/** No model has this name, or none that the caller may know of: both get the same answer. */
export function modelNotFound(name: string): ServeError {
  return new ServeError('MODEL_NOT_FOUND', `Model not found: ${told(name)}`)
}

/** The same for a name that is not in the model store either. */
export function storedModelNotFound(name: string): ServeError {
  return new ServeError('MODEL_NOT_FOUND', `Model ${name} not found`)
}

/** The same for a workflow. */
export function workflowNotFound(name: string): ServeError {
  return new ServeError('WORKFLOW_NOT_FOUND', `Workflow not found: ${told(name)}`)
}
