import type { ConnectionPool } from '../admission/connection-pool.ts'
import type { Socket } from 'node:net'
import type { Http2Server, Http2SecureServer, Http2Session } from 'node:http2'
import type { CutWarnings } from '../admission/cut-warnings.ts'
import { cutUnexplained } from '../unexplained-bytes.ts'
import { peerOf } from './connection.ts'
import {
  FAREWELL_MS,
  FIRST_CALL_MS,
  NGHTTP2_CANCEL,
  NGHTTP2_ENHANCE_YOUR_CALM,
  SEND_BUFFER_BYTES,
  SLOWEST_BYTES_PER_SECOND,
} from './limits.ts'
import { startTimer } from '../../../common/timer.ts'

/** A connection without a call. */
interface Silent {
  timer: NodeJS.Timeout
  /** There from the client's first bytes on. */
  session: Http2Session | undefined
}

/** Closes connections that never make a call, or that their clients leave open when they are over. */
export class ConnectionGate {
  readonly #pool: ConnectionPool | undefined
  readonly #cuts: CutWarnings
  /** Those that have made no call yet, by address and port. */
  readonly #silent = new Map<string, Silent>()
  readonly #sessions = new Set<Http2Session>()
  /** What the system accepted, by address and port: below TLS, and without what guards a session's socket. */
  readonly #sockets = new Map<string, Socket>()

  /** `pool`: limits the connections; undefined: nothing does. `cuts`: logs why connections are closed. */
  constructor(pool: ConnectionPool | undefined, cuts: CutWarnings) {
    this.#pool = pool
    this.#cuts = cuts
  }

  /** Connections that are open. */
  get count(): number {
    return this.#sockets.size
  }

  /** To be called before the server takes its first connection. */
  guard(server: Http2Server | Http2SecureServer): void {
    // Before Node makes the session.
    server.prependListener('connection', (socket: Socket) => this.#watch(socket))
    server.on('session', (session: Http2Session) => {
      this.#sessions.add(session)
      const peer = peerOf(session.socket)
      const socket = this.#sockets.get(peer)
      const cut = (): void => {
        this.#cuts.tell('unexplained', session.socket)
        session.destroy(new Error('The connection sent frames that no call needs'), NGHTTP2_ENHANCE_YOUR_CALM)
      }
      cutUnexplained(session, session.socket, cut, () => {
        if (socket !== undefined) seeOff(socket)
      })
      session.once('close', () => this.#sessions.delete(session))
      const silent = this.#silent.get(peer)
      if (silent !== undefined) silent.session = session
    })
    // `resetAndDestroy`, because `destroy` would leave the port of each in TIME_WAIT.
    this.#pool?.guard(server, (socket) => socket.resetAndDestroy())
  }

  /** Breaks every connection now. Without channelz, grpc-js 1.14 does not find them for its forceShutdown. */
  breakAll(): void {
    for (const session of this.#sessions) session.destroy(undefined, NGHTTP2_CANCEL)
  }

  /** A call of the connection was let in. */
  called(session: Http2Session): void {
    if (this.#silent.size > 0) this.#clear(peerOf(session.socket))
  }

  #watch(socket: Socket): void {
    const peer = peerOf(socket)
    const silent: Silent = {
      timer: setTimeout(() => dismiss(silent, socket), FIRST_CALL_MS).unref(),
      session: undefined,
    }
    this.#silent.set(peer, silent)
    this.#sockets.set(peer, socket)
    socket.once('close', () => {
      this.#clear(peer)
      this.#sockets.delete(peer)
    })
  }

  #clear(peer: string): void {
    clearTimeout(this.#silent.get(peer)?.timer)
    this.#silent.delete(peer)
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

/**
 * Ends the connection of a session that is over, after GOAWAY of either side or a breach. Node only ends its
 * own side of it and reads on until the client ends the other, so it would keep its place for as long as the
 * client likes.
 */
function seeOff(socket: Socket): void {
  if (socket.destroyed) return
  const unsentMs = (Math.min(socket.bytesWritten, SEND_BUFFER_BYTES) / SLOWEST_BYTES_PER_SECOND) * 1_000
  const timer = startTimer(() => socket.destroy(), FAREWELL_MS + unsentMs).unref()
  socket.once('close', () => clearTimeout(timer))
  // It is not paused: closed with bytes that nobody read, it would drop what the client has yet to read.
  cutUnexplained(socket, socket, () => socket.destroy())
}
