interface Turn {
  /** What was asked last; it ends after all that was asked before. */
  last: Promise<void>
  /** A load that has not begun: further ones join it. */
  waiting: Promise<void> | undefined
}

/**
 * The order of loads and unloads of one name: one after the other. Loads that wait are one, which begins
 * after all of them were asked for, so that it sees the files that each of them saw.
 */
export class LoadTurns {
  readonly #turns = new Map<string, Turn>()

  load(name: string, work: () => Promise<void>): Promise<void> {
    const turn = this.#turn(name)
    if (turn.waiting !== undefined) return turn.waiting
    const run = this.#add(name, turn, () => {
      if (turn.waiting === run) turn.waiting = undefined
      return work()
    })
    turn.waiting = run
    return run
  }

  unload(name: string, work: () => Promise<void>): Promise<void> {
    const turn = this.#turn(name)
    // A load that is asked for from now on comes after this.
    turn.waiting = undefined
    return this.#add(name, turn, work)
  }

  #turn(name: string): Turn {
    const turn = this.#turns.get(name) ?? { last: Promise.resolve(), waiting: undefined }
    this.#turns.set(name, turn)
    return turn
  }

  #add(name: string, turn: Turn, work: () => Promise<void>): Promise<void> {
    const run = turn.last.then(work)
    const ended = run
      .catch(() => undefined)
      .then(() => {
        if (turn.last === ended) this.#turns.delete(name)
      })
    turn.last = ended
    return run
  }
}
