/**
 * Errors that the server gave to a handler: abort reasons and refused sends. An unhandled rejection with one
 * of them must not end the worker and its other requests; main.ts checks here.
 */
const own = new WeakSet()

/** Marks an error as the server's own and returns it. */
export function markOwn<E extends Error>(error: E): E {
  own.add(error)
  return error
}

export function isOwn(thrown: unknown): boolean {
  return typeof thrown === 'object' && thrown !== null && own.has(thrown)
}
