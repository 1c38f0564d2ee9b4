import type { Server, Socket } from 'node:net'
import { groupOf } from '../../common/address-group.ts'

export interface ConnectionLimits {
  /** Connections in all. */
  readonly max: number
  /** Connections of one client address (IPv6: of one /64 network); does not concern Unix sockets. */
  readonly maxPerAddress: number
}

/** Counts connections that are open, in all and by address. */
export class ConnectionCount {
  readonly limits: ConnectionLimits
  readonly #byAddress = new Map<string, number>()
  #open = 0

  constructor(limits: ConnectionLimits) {
    this.limits = limits
  }

  get open(): number {
    return this.#open
  }

  /** Counts a connection until it closes, or says which limit it would exceed. */
  take(socket: Socket): 'taken' | keyof ConnectionLimits {
    const { remoteAddress } = socket
    const address = remoteAddress === undefined ? undefined : groupOf(remoteAddress)
    const before = address === undefined ? 0 : (this.#byAddress.get(address) ?? 0)
    if (this.#open >= this.limits.max) return 'max'
    if (before >= this.limits.maxPerAddress) return 'maxPerAddress'
    this.#open += 1
    if (address !== undefined) this.#byAddress.set(address, before + 1)
    socket.once('close', () => {
      this.#open -= 1
      if (address !== undefined) this.#leave(address)
    })
    return 'taken'
  }

  #leave(address: string): void {
    const rest = this.#byAddress.get(address)! - 1
    if (rest === 0) this.#byAddress.delete(address)
    else this.#byAddress.set(address, rest)
  }
}

type Taker = (this: Server, socket: Socket) => void

/**
 * Stands before those that take the server's connections; to be called when they are there. `door` calls
 * `enter` for each connection that they get.
 */
export function standBefore(server: Server, door: (socket: Socket, enter: () => void) => void): void {
  const takers = server.listeners('connection') as Taker[]
  server.removeAllListeners('connection')
  server.on('connection', (socket: Socket) => {
    door(socket, () => {
      for (const taker of takers) taker.call(server, socket)
    })
  })
}
