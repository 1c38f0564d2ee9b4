import { groupOf } from '../../../common/address-group.ts'
import type { ConnectionPool } from '../connection-pool.ts'
import { type Server, type Socket } from 'node:net'
import type { Http2Server, Http2SecureServer, Http2Session } from 'node:http2'
import { FIRST_CALL_MS, type GrpcLimits } from './limits.ts'

/** How long a client has to leave that was told to. */
const FAREWELL_MS = 1_000

/** A connection without a call. */
interface Silent {
  timer: NodeJS.Timeout
  /** There from the client's first bytes on. */
  session: Http2Session | undefined
}

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
  readonly #silent = new Map<string, Silent>()
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
    server.on('session', (session: Http2Session) => {
      const silent = this.#silent.get(peerOf(session.socket))
      if (silent !== undefined) silent.session = session
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
    const silent: Silent = {
      timer: setTimeout(() => dismiss(silent, socket), FIRST_CALL_MS).unref(),
      session: undefined,
    }
    this.#silent.set(peer, silent)
    socket.on('close', () => {
      this.#clear(peer)
      this.#leave(address)
    })
    return true
  }

  #clear(peer: string): void {
    clearTimeout(this.#silent.get(peer)?.timer)
    this.#silent.delete(peer)
  }

  #leave(address: string): void {
    this.#count--
    const rest = this.#byAddress.get(address)! - 1
    if (rest === 0) this.#byAddress.delete(address)
    else this.#byAddress.set(address, rest)
  }
}

/** A call that is under way now must not fail: after GOAWAY, clients make it again on a new connection. */
function dismiss(silent: Silent, socket: Socket): void {
  if (silent.session === undefined) {
    socket.destroy()
    return
  }
  silent.session.close()
  silent.timer = setTimeout(() => socket.destroy(), FAREWELL_MS).unref()
}

function peerOf({ remoteAddress, remotePort }: Pick<Socket, 'remoteAddress' | 'remotePort'>): string {
  return `${remoteAddress}:${remotePort}`
}
