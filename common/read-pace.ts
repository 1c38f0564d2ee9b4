import type { Readable } from 'node:stream'

/**
 * Keeps the turns of the event loop short while much arrives on many streams: Node reads up to two megabytes
 * of each in a turn. What goes beyond the bytes of a turn waits in line.
 */
export class ReadPace {
  readonly #bytesOfTurn: number
  readonly #streamsOfTurn: number
  #bytes = 0
  #end: NodeJS.Immediate | undefined
  readonly #waiting: Readable[] = []

  /**
   * @param bytesOfTurn after which those that go on sending wait for the next turn
   * @param streamsOfTurn of those that waited, so many go on in a turn; Node reads at least 64 KiB of each.
   * Default: all
   */
  constructor(bytesOfTurn: number, streamsOfTurn = Infinity) {
    this.#bytesOfTurn = bytesOfTurn
    this.#streamsOfTurn = streamsOfTurn
  }

  /** Bytes have come from this stream. */
  read(stream: Readable, bytes: number): void {
    this.#bytes += bytes
    this.#end ??= setImmediate(this.#next)
    // One that is paused already is in line, or waits for its reader.
    if (this.#bytes <= this.#bytesOfTurn || stream.isPaused()) return
    stream.pause()
    this.#waiting.push(stream)
  }

  readonly #next = (): void => {
    this.#bytes = 0
    const waiting = this.#waiting
    const [first, ...others] = waiting.splice(0, this.#streamsOfTurn)
    for (const stream of others) stream.resume()
    // It has used most of the turn before: the next one is another's.
    first?.resume()
    this.#end = waiting.length > 0 ? setImmediate(this.#next) : undefined
  }
}
