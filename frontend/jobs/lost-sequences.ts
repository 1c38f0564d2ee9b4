import { ServeError } from '../../common/errors.ts'
import type { Sequence } from './lanes.ts'
import type { SequenceRequest } from './sequence-headers.ts'

type Known = Pick<Sequence, 'id' | 'owner'>

interface Lost {
  readonly id: string
  /** performance.now() at which it would have ended by itself. */
  readonly until: number
}

/**
 * The sequences that ended with their worker before any of their requests failed. Without it the next request
 * would begin a new one, and its client would take the answer for one of the old.
 */
export class LostSequences {
  /** By id and owner, because each owner may have lost one of the same id; oldest first. */
  readonly #lost = new Map<string, Lost>()
  readonly #max: number
  readonly #maxIdleMs: number

  constructor(max: number, maxIdleMs: number) {
    this.#max = max
    this.#maxIdleMs = maxIdleMs
  }

  add({ id, owner }: Known): void {
    const key = keyOf({ id, owner })
    this.#lost.delete(key)
    this.#lost.set(key, { id, until: performance.now() + this.#maxIdleMs })
    const [oldest] = this.#lost.keys()
    if (this.#lost.size > this.#max) this.#lost.delete(oldest!)
  }

  /** Whosever it was. */
  has(id: string): boolean {
    for (const lost of this.#lost.values()) if (lost.id === id && isRecent(lost)) return true
    return false
  }

  /** Its client knows, or begins anew. */
  forget(sequence: Known): void {
    if (this.#lost.size > 0) this.#lost.delete(keyOf(sequence))
  }

  /**
   * The next request of a lost sequence is told so, unless it begins one. Others know nothing of it.
   * @throws ServeError NO_WORKER
   */
  tell({ id, first }: SequenceRequest, owner: string | undefined, modelName: string): void {
    if (id === undefined || this.#lost.size === 0) return
    const lost = this.#lost.get(keyOf({ id, owner }))
    if (lost === undefined) return
    this.forget({ id, owner })
    if (first || !isRecent(lost)) return
    throw new ServeError(
      'NO_WORKER',
      `The worker of sequence "${id}" of model "${modelName}" has ended, and the state in it is lost. Begin the sequence again, with its first request.`,
    )
  }
}

function keyOf({ id, owner }: Known): string {
  return JSON.stringify([id, owner])
}

function isRecent({ until }: Lost): boolean {
  return until > performance.now()
}
