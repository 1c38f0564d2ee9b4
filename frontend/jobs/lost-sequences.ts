import { ServeError } from '../../common/errors.ts'
import type { SequenceRequest } from './sequence-headers.ts'

/**
 * The sequences that ended with their worker before any of their requests failed. Without it the next request
 * would begin a new one, and its client would take the answer for one of the old.
 */
export class LostSequences {
  /** When each would have ended by itself, oldest first. */
  readonly #until = new Map<string, number>()
  readonly #max: number
  readonly #maxIdleMs: number

  constructor(max: number, maxIdleMs: number) {
    this.#max = max
    this.#maxIdleMs = maxIdleMs
  }

  add(id: string): void {
    this.#until.delete(id)
    this.#until.set(id, performance.now() + this.#maxIdleMs)
    const [oldest] = this.#until.keys()
    if (this.#until.size > this.#max) this.#until.delete(oldest!)
  }

  has(id: string): boolean {
    return (this.#until.get(id) ?? -Infinity) > performance.now()
  }

  /** Its client knows, or begins anew. */
  forget(id: string): void {
    this.#until.delete(id)
  }

  /**
   * The next request of a lost sequence is told so, unless it begins one. @throws ServeError NO_WORKER
   */
  tell({ id, first }: SequenceRequest, modelName: string): void {
    if (id === undefined) return
    const isLost = this.has(id) && !first
    this.forget(id)
    if (!isLost) return
    throw new ServeError(
      'NO_WORKER',
      `The worker of sequence "${id}" of model "${modelName}" has ended, and the state in it is lost. Begin the sequence again, with its first request.`,
    )
  }
}
