import { ServeError } from '../../common/errors.ts'
import type { Sequence } from './sequence.ts'
import type { SequenceRequest } from './sequence-headers.ts'

interface Lost {
  readonly owner: string | undefined
  /** performance.now() at which it would have ended by itself. */
  readonly until: number
}

/**
 * The sequences that ended with their worker before any of their requests failed. Without it the next request
 * would begin a new one, and its client would take the answer for one of the old.
 */
export class LostSequences {
  /** By id, oldest first. */
  readonly #lost = new Map<string, Lost>()
  readonly #max: number
  readonly #maxIdleMs: number

  constructor(max: number, maxIdleMs: number) {
    this.#max = max
    this.#maxIdleMs = maxIdleMs
  }

  add({ id, owner }: Pick<Sequence, 'id' | 'owner'>): void {
    this.#lost.delete(id)
    this.#lost.set(id, { owner, until: performance.now() + this.#maxIdleMs })
    const [oldest] = this.#lost.keys()
    if (this.#lost.size > this.#max) this.#lost.delete(oldest!)
  }

  has(id: string): boolean {
    return (this.#lost.get(id)?.until ?? -Infinity) > performance.now()
  }

  /** Its client knows, or begins anew. */
  forget(id: string): void {
    this.#lost.delete(id)
  }

  /**
   * The next request of a lost sequence is told so, unless it begins one. Others know nothing of it.
   * @throws ServeError NO_WORKER
   */
  tell({ id, first }: SequenceRequest, owner: string | undefined, modelName: string): void {
    if (id === undefined || this.#lost.get(id)?.owner !== owner) return
    const isLost = this.has(id) && !first
    this.forget(id)
    if (!isLost) return
    throw new ServeError(
      'NO_WORKER',
      `The worker of sequence "${id}" of model "${modelName}" has ended, and the state in it is lost. Begin the sequence again, with its first request.`,
    )
  }
}
