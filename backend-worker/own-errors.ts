/**
 * Errors that the server itself handed to a handler: abort reasons and refused sends. When nobody awaits a promise that
 * ends with one of them, that is no reason to end the worker with all its other requests (main.ts asks here).
 */
const own = new WeakSet()

/** Remembers an error as ours and returns it. */
export function markOwn<E extends Error>(error: E): E {
  own.add(error)
  return error
}

export function isOwn(thrown: unknown): boolean {
  return typeof thrown === 'object' && thrown !== null && own.has(thrown)
}
