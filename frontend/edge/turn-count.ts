/** Counts what comes in one turn of the event loop: what Node has read of all sockets at once. */
export class TurnCount {
  #count = 0
  #end: NodeJS.Immediate | undefined

  /** How many there were in this turn, this one included. */
  next(): number {
    this.#end ??= setImmediate(() => {
      this.#count = 0
      this.#end = undefined
    })
    return ++this.#count
  }
}
