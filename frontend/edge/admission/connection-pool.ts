import type { Server, Socket } from 'node:net'
import { groupOf } from '../../../common/addresses.ts'
import { Budget } from './budget.ts'

/** Milliseconds between two warnings of one pool. */
const WARN_EVERY_MS = 60_000

type Taker = (this: Server, socket: Socket) => void

/** The connections that some listeners may have open together. The next ones are refused at once. */
export class ConnectionPool {
  /** What the connections are for. */
  readonly name: string
  readonly #budget: Budget
  readonly #warn: (message: string) => void
  #refused = 0
  #lastWarning = -Infinity

  constructor(name: string, max: number, warn: (message: string) => void) {
    this.name = name
    this.#budget = new Budget(max)
    this.#warn = warn
  }

  /** Connections that were refused since the start. */
  get refused(): number {
    return this.#refused
  }

  /**
   * Stands before the listeners that take the server's connections; to be called when they are there. Errors
   * of `accept`, such as a lack of descriptors, are logged and do not end the process.
   */
  guard(server: Server, refuse: (socket: Socket) => void): void {
    const takers = server.listeners('connection') as Taker[]
    server.removeAllListeners('connection')
    server.on('connection', (socket: Socket) => {
      if (this.#take(socket)) for (const taker of takers) taker.call(server, socket)
      else refuse(socket)
    })
    server.on('error', ({ message }) => this.#tell(`could not be accepted: ${message}`))
  }

  /** Counts a connection until it closes. False: there are too many. */
  #take(socket: Socket): boolean {
    const { remoteAddress } = socket
    const lease = this.#budget.lease(remoteAddress)
    const short = lease.take(1)
    if (short === undefined) {
      socket.once('close', () => lease.close())
      return true
    }
    lease.close()
    this.#refused += 1
    const { limit, perAddress } = this.#budget
    this.#tell(
      short === 'all'
        ? `are refused: there are ${limit} of them (max_connections)`
        : `are refused: ${groupOf(remoteAddress!)} has ${perAddress} of them, half of all (max_connections)`,
    )
    return false
  }

  #tell(what: string): void {
    const now = performance.now()
    if (now - this.#lastWarning < WARN_EVERY_MS) return
    this.#lastWarning = now
    this.#warn(`Connections for ${this.name} ${what}`)
  }
}
