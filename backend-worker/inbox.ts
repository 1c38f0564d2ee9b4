import type { PredictMessage } from '../protocol/messages.ts'

/** Batches that wait for those before them. The frontend can have them back until they begin. */
export class Inbox {
  #waiting: PredictMessage[] = []

  add(message: PredictMessage): void {
    this.#waiting.push(message)
  }

  has(id: number): boolean {
    return this.#waiting.some((message) => holds(message, id))
  }

  /** Takes the batch that has waited longest. */
  next(): PredictMessage | undefined {
    return this.#waiting.shift()
  }

  /** Takes out every batch with one of these requests. Returns the ids of all their requests. */
  withdraw(ids: readonly number[]): number[] {
    return this.#takeOut((message) => ids.some((id) => holds(message, id)))
  }

  withdrawAll(): number[] {
    return this.#takeOut(() => true)
  }

  #takeOut(wanted: (message: PredictMessage) => boolean): number[] {
    const out = this.#waiting.filter(wanted)
    if (out.length > 0) this.#waiting = this.#waiting.filter((message) => !out.includes(message))
    return out.flatMap(({ requests }) => requests.map(({ id }) => id))
  }
}

function holds({ requests }: PredictMessage, id: number): boolean {
  return requests.some((request) => request.id === id)
}
