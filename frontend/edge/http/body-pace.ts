import type { Socket } from 'node:net'

/** Bytes of bodies after which those that go on sending wait for the next turn. */
const TURN_BYTES = 262_144
/** Sockets that go on in the next turn: Node reads 64 KiB of each at a time. */
const SOCKETS_IN_TURN = 4

/**
 * Keeps the turns of the event loop short while large bodies arrive. Node reads up to two megabytes of each
 * socket in a turn, and accepts one connection: behind two hundred clients that sent large bodies at once, a
 * new one waited for seconds. What goes beyond the bytes of a turn waits in line.
 */
export class BodyPace {
  #bytes = 0
  #end: NodeJS.Immediate | undefined
  readonly #waiting: Socket[] = []

  /** Bytes of a body have come from this socket. */
  read(socket: Socket, bytes: number): void {
    this.#bytes += bytes
    this.#end ??= setImmediate(this.#next)
    // One that is paused already is in line, or waits for its reader.
    if (this.#bytes <= TURN_BYTES || socket.isPaused()) return
    socket.pause()
    this.#waiting.push(socket)
  }

  readonly #next = (): void => {
    this.#bytes = 0
    const waiting = this.#waiting
    for (const socket of waiting.splice(0, SOCKETS_IN_TURN)) socket.resume()
    this.#end = waiting.length > 0 ? setImmediate(this.#next) : undefined
  }
}
