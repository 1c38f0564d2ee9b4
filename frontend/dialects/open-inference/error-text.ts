import type { ServeError } from '../../../common/errors.ts'

/** What a client reads of an error. MLServer and Triton send what a handler's exception says. */
export function errorText({ message, said }: ServeError): string {
  return said ?? message
}
