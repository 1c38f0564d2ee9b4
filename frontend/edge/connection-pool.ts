import type { Server, Socket } from 'node:net'
import { groupOf } from '../../common/address-group.ts'

/** Milliseconds between two warnings of one pool. */
const WARN_EVERY_MS = 60_000

export interface PoolLimits {
  /** Connections in all. */
  readonly max: number
  /** Connections of one client address (IPv6: of one /64 network); does not concern Unix sockets. */
  readonly maxPerAddress: number
}

type Taker = (this: Server, socket: Socket) => void

/** The connections that some listeners may have open together. What is over is refused at once. */
export class ConnectionPool {
  readonly #name: string
  readonly #limits: PoolLimits
  readonly #warn: (message: string) => void
  readonly #byAddress = new Map<string, number>()
  #count = 0
  #lastWarning = -Infinity

  /** `name` says in warnings what the connections are for. */
  constructor(name: string, limits: PoolLimits, warn: (message: string) => void) {
    this.#name = name
    this.#limits = limits
    this.#warn = warn
  }

  /** Connections that are open. */
  get count(): number {
    return this.#count
  }

  /**
   * Stands before the listeners that take the server's connections; to be called when they are there. Errors
   * of `accept`, such as a lack of descriptors, are told and do not end the process.
   */
  guard(server: Server, refuse: (socket: Socket) => void): void {
    const takers = server.listeners('connection') as Taker[]
    server.removeAllListeners('connection')
    server.on('connection', (socket: Socket) => {
      if (this.take(socket)) for (const taker of takers) taker.call(server, socket)
      else refuse(socket)
    })
    server.on('error', ({ message }) => this.#tell(`could not be accepted: ${message}`))
  }

  /** Counts a connection until it closes. False: there are too many. */
  take(socket: Socket): boolean {
    const { remoteAddress } = socket
    const address = remoteAddress === undefined ? undefined : groupOf(remoteAddress)
    const before = address === undefined ? 0 : (this.#byAddress.get(address) ?? 0)
    const { max, maxPerAddress } = this.#limits
    if (this.#count >= max) return this.#full(`there are ${max} of them (max_connections)`)
    if (before >= maxPerAddress)
      return this.#full(`${address} has ${maxPerAddress} of them (max_connections_per_address)`)
    this.#count += 1
    if (address !== undefined) this.#byAddress.set(address, before + 1)
    socket.once('close', () => this.#leave(address))
    return true
  }

  #leave(address: string | undefined): void {
    this.#count -= 1
    if (address === undefined) return
    const rest = this.#byAddress.get(address)! - 1
    if (rest === 0) this.#byAddress.delete(address)
    else this.#byAddress.set(address, rest)
  }

  #full(why: string): false {
    this.#tell(`are refused: ${why}`)
    return false
  }

  #tell(what: string): void {
    const now = performance.now()
    if (now - this.#lastWarning < WARN_EVERY_MS) return
    this.#lastWarning = now
    this.#warn(`Connections for ${this.#name} ${what}`)
  }
}
