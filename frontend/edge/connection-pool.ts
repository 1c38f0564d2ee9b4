import type { Server, Socket } from 'node:net'
import { groupOf } from '../../common/address-group.ts'
import { ArrivalPace } from './arrival-pace.ts'
import { ConnectionCount, standBefore, type ConnectionLimits } from './connection-count.ts'

/** Milliseconds between two warnings of one pool. */
const WARN_EVERY_MS = 60_000

export interface PoolLimits extends ConnectionLimits {
  /** New connections of one address per second; 0: any number. */
  readonly newPerAddress: number
}

/**
 * The connections that some listeners may have open together. What is over is refused at once; what one
 * address opens too fast waits.
 */
export class ConnectionPool {
  /** What the connections are for. */
  readonly name: string
  readonly #count: ConnectionCount
  readonly #pace: ArrivalPace
  readonly #newPerAddress: number
  readonly #warn: (message: string) => void
  #refused = 0
  #lastWarning = -Infinity

  /** `name` says what the connections are for. */
  constructor(name: string, limits: PoolLimits, warn: (message: string) => void) {
    this.name = name
    this.#count = new ConnectionCount(limits)
    this.#pace = new ArrivalPace(limits.newPerAddress)
    this.#newPerAddress = limits.newPerAddress
    this.#warn = warn
  }

  /** Connections that are open. */
  get count(): number {
    return this.#count.open
  }

  /** Connections that were refused since the start. */
  get refused(): number {
    return this.#refused
  }

  /** Counts a connection that was refused, here or by a listener of the pool. */
  countRefused(): void {
    this.#refused += 1
  }

  /**
   * Stands before the listeners that take the server's connections; to be called when they are there. Errors
   * of `accept`, such as a lack of descriptors, are told and do not end the process.
   */
  guard(server: Server, refuse: (socket: Socket) => void): void {
    standBefore(server, (socket, enter) => {
      if (!this.take(socket)) {
        refuse(socket)
        return
      }
      const turn = this.#pace.arrive(server, socket, enter)
      if (turn === 'entered') return
      this.#tell(`${turn === 'waits' ? 'wait' : 'are refused'}: ${this.#tooFast(socket)}`)
      if (turn === 'full') refuse(socket)
    })
    server.on('error', ({ message }) => this.#tell(`could not be accepted: ${message}`))
  }

  /** Counts a connection until it closes. False: there are too many. */
  take(socket: Socket): boolean {
    const taken = this.#count.take(socket)
    if (taken === 'taken') return true
    this.countRefused()
    const { max, maxPerAddress } = this.#count.limits
    const why =
      taken === 'max'
        ? `there are ${max} of them (max_connections)`
        : `${groupOf(socket.remoteAddress!)} has ${maxPerAddress} of them (max_connections_per_address)`
    this.#tell(`are refused: ${why}`)
    return false
  }

  #tooFast({ remoteAddress }: Socket): string {
    return `${groupOf(remoteAddress!)} opens more than ${this.#newPerAddress} per second (max_new_connections_per_address)`
  }

  #tell(what: string): void {
    const now = performance.now()
    if (now - this.#lastWarning < WARN_EVERY_MS) return
    this.#lastWarning = now
    this.#warn(`Connections for ${this.name} ${what}`)
  }
}
