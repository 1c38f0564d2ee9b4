import { groupOf } from '../../../common/address-group.ts'
import type { ConnectionPool } from '../connection-pool.ts'
import { type Server, type Socket } from 'node:net'
import type { Http2Server, Http2SecureServer, Http2Session } from 'node:http2'
import { FIRST_CALL_MS, type GrpcLimits } from './limits.ts'

type ConnectionTaker = (this: Server, socket: Socket) => void

/**
 * Counts the connections of a listener, refuses those that are too many, and closes those that never make a
 * call.
 */
export class ConnectionGate {
  readonly #limits: GrpcLimits
  readonly #pool: ConnectionPool | undefined
  readonly #byAddress = new Map<string, number>()
  /** Those that have made no call yet, by address and port. */
  readonly #silent = new Map<string, NodeJS.Timeout>()
  #count = 0

  /** `pool`: what the listener shares with others; default: nothing. */
  constructor(limits: GrpcLimits, pool?: ConnectionPool) {
    this.#limits = limits
    this.#pool = pool
  }

  /** Connections that are open. */
  get count(): number {
    return this.#count
  }

  /** To be called before the server takes its first connection. */
  guard(server: Http2Server | Http2SecureServer): void {
    const takers = server.listeners('connection') as ConnectionTaker[]
    // `resetAndDestroy`, because `destroy` would leave the port of each in TIME_WAIT.
    const refuse = (socket: Socket): unknown => socket.resetAndDestroy()
    server.removeAllListeners('connection')
    server.on('connection', (socket: Socket) => {
      if (this.#admit(socket)) for (const taker of takers) taker.call(server, socket)
      else refuse(socket)
    })
    this.#pool?.guard(server, refuse)
  }

  /** A call of the connection was let in. */
  called(session: Http2Session): void {
    if (this.#silent.size > 0) this.#clear(peerOf(session.socket))
  }

  #admit(socket: Socket): boolean {
    const address = groupOf(socket.remoteAddress ?? '')
    const before = this.#byAddress.get(address) ?? 0
    if (this.#count >= this.#limits.grpcMaxConnections) return false
    if (before >= this.#limits.grpcMaxConnectionsPerAddress) return false
    const peer = peerOf(socket)
    this.#count++
    this.#byAddress.set(address, before + 1)
    this.#silent.set(peer, setTimeout(() => socket.destroy(), FIRST_CALL_MS).unref())
    socket.on('close', () => {
      this.#clear(peer)
      this.#leave(address)
    })
    return true
  }

  #clear(peer: string): void {
    clearTimeout(this.#silent.get(peer))
    this.#silent.delete(peer)
  }

  #leave(address: string): void {
    this.#count--
    const rest = this.#byAddress.get(address)! - 1
    if (rest === 0) this.#byAddress.delete(address)
    else this.#byAddress.set(address, rest)
  }
}

function peerOf({ remoteAddress, remotePort }: Pick<Socket, 'remoteAddress' | 'remotePort'>): string {
  return `${remoteAddress}:${remotePort}`
}
