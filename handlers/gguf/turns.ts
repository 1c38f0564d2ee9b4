import { setMaxListeners } from 'node:events'

/** A place that a request holds. */
export interface Turn {
  readonly owner: AbortSignal
  /** Another request has fewer places and waits for one: the holder gives this back soon, and asks again. */
  isWanted: boolean
}

interface Waiting {
  readonly owner: AbortSignal
  enter(turn: Turn): void
}

/**
 * A fixed number of places, shared by requests. A request is known by its signal and may want any number of
 * places. A free place goes to the request that holds the fewest, the first of these to ask. A request that
 * holds at least two more than one that waits is asked to give back its newest.
 */
export class Turns {
  #free: number
  readonly #held: Turn[] = []
  readonly #line = new Set<Waiting>()

  constructor(count: number) {
    this.#free = count
  }

  /** @throws the signal's reason when it is aborted, also while waiting */
  async take(owner: AbortSignal): Promise<Turn> {
    owner.throwIfAborted()
    if (this.#free > 0) {
      this.#free -= 1
      return this.#give(owner)
    }
    return this.#wait(owner)
  }

  giveBack(turn: Turn): void {
    this.#held.splice(this.#held.indexOf(turn), 1)
    const next = this.#next()
    if (next === undefined) this.#free += 1
    else next.enter(this.#give(next.owner))
    this.#share()
  }

  #give(owner: AbortSignal): Turn {
    const turn = { owner, isWanted: false }
    this.#held.push(turn)
    return turn
  }

  #wait(owner: AbortSignal): Promise<Turn> {
    setMaxListeners(0, owner) // one for each choice
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#line.delete(waiting)
        reject(owner.reason as Error)
      }
      const enter = (turn: Turn): void => {
        this.#line.delete(waiting)
        owner.removeEventListener('abort', leave)
        resolve(turn)
      }
      const waiting = { owner, enter }
      this.#line.add(waiting)
      owner.addEventListener('abort', leave, { once: true })
      this.#share()
    })
  }

  /** Who waits and holds the fewest places. */
  #next(): Waiting | undefined {
    let next: Waiting | undefined
    let fewest = Infinity
    for (const waiting of this.#line) {
      const count = this.#kept(waiting.owner)
      if (count >= fewest) continue
      next = waiting
      fewest = count
    }
    return next
  }

  #share(): void {
    if (this.#held.some(({ isWanted }) => isWanted)) return
    const next = this.#next()
    if (next === undefined) return
    const fewest = this.#kept(next.owner)
    const most = Math.max(...this.#held.map(({ owner }) => this.#kept(owner)))
    const turn = this.#held.findLast(({ owner }) => this.#kept(owner) === most)
    if (turn !== undefined && most > fewest + 1) turn.isWanted = true
  }

  #kept(owner: AbortSignal): number {
    return this.#held.filter((turn) => turn.owner === owner).length
  }
}

/**
 * Pauses generations between two tokens while another operation needs the context. The runtime releases the
 * context only when no sequence requests a token, so without a pause the operation (freeing a sequence) would
 * wait until all other sequences end.
 */
export class Interlude {
  #running = 0
  #over: Promise<void> | undefined
  #end: (() => void) | undefined

  /** Awaited by generations before the next token; undefined: no pause. */
  get over(): Promise<void> | undefined {
    return this.#over
  }

  async during(work: () => Promise<void>): Promise<void> {
    this.#over ??= new Promise((resolve) => (this.#end = resolve))
    this.#running += 1
    try {
      await work()
    } finally {
      this.#running -= 1
      if (this.#running === 0) {
        this.#end?.()
        this.#over = undefined
      }
    }
  }
}
