import type { Http2SecureServer, Http2Server, Http2Session } from 'node:http2'
import type { Socket } from 'node:net'
import { startTimer } from '../../../common/timer.ts'
import type { Client } from '../../auth/gatekeeper.ts'
import type { Limited, TimeLimit } from '../../jobs/time-limit.ts'
import type { ClientAdmission } from '../admission/admission.ts'
import type { Lease } from '../admission/budget.ts'
import type { ConnectionPool } from '../admission/connection-pool.ts'
import type { CutWarnings } from '../admission/cut-warnings.ts'
import { TurnCount } from '../turn-count.ts'
import { cutUnexplained, type Explained, explainedOf } from '../unexplained-bytes.ts'
import {
  CALL_FRAMES_BYTES,
  FAREWELL_MS,
  FIRST_CALL_MS,
  MAX_PUBLIC_IN_TURN,
  MAX_REFUSED_CALLS,
  MAX_REFUSED_IN_TURN,
  NGHTTP2_CANCEL,
  NGHTTP2_ENHANCE_YOUR_CALM,
  SEND_BUFFER_BYTES,
  SLOWEST_BYTES_PER_SECOND,
} from './limits.ts'

/** Refused calls of all connections that were not accepted. */
const refusedInTurn = new TurnCount()

/** What is known of one gRPC connection. Without open calls it is idle, and closed with GOAWAY in the end. */
export class Connection implements Limited {
  /** Bytes of its open calls, and of their messages that are not whole or were not read. */
  readonly requests: Lease
  readonly explained: Explained
  /** Bytes of answers that it has not read. */
  readonly answers: Lease
  /** What Node shows of the socket. */
  readonly client: Client
  /** Of the client; undefined: a Unix socket. Node forgets it when the session is over. */
  readonly address: string | undefined
  /** Names the client; see peerOf. */
  readonly peer: string
  /** One of its calls brought a token that is right, or the server asks for none. */
  accepted = false
  readonly #session: Http2Session
  readonly #idle: TimeLimit
  readonly #cuts: ClientAdmission['cuts']
  #openCalls = 0
  /** Calls that were refused or broke a limit while it was not accepted. */
  #refused = 0
  readonly #publicInTurn = new TurnCount()

  constructor(session: Http2Session, idle: TimeLimit, { requests, answers, cuts }: ClientAdmission) {
    this.#session = session
    this.#cuts = cuts
    const { remoteAddress } = session.socket
    this.requests = requests.lease(remoteAddress)
    this.answers = answers.lease(remoteAddress)
    this.explained = explainedOf(session)
    this.client = session.socket
    this.address = remoteAddress
    this.peer = peerOf(session.socket)
    this.#idle = idle
    session.once('close', () => {
      this.#idle.end(this)
      this.requests.close()
      this.answers.close()
    })
  }

  /** Bytes of an answer wait for the client, until `answers` gets them back. */
  leavesUnread(bytes: number): void {
    if (this.answers.take(bytes) === undefined) return
    this.answers.close()
    this.#cuts.tell('unread', this.#session.socket)
    this.#session.destroy(new Error('The connection does not read its answers'), NGHTTP2_ENHANCE_YOUR_CALM)
  }

  /** A call was let in that counts so many bytes. */
  callOpened(callBytes: number): void {
    this.explained.bytes += this.accepted ? CALL_FRAMES_BYTES : callBytes
    if (this.#openCalls++ === 0) this.#idle.end(this)
  }

  callClosed(): void {
    if (--this.#openCalls === 0 && !this.#session.destroyed) this.#idle.begin(this)
  }

  /** Whether one more call that asks for no token may come in this turn of the event loop. */
  mayCallPublicly(): boolean {
    return this.accepted || this.#publicInTurn.next() <= MAX_PUBLIC_IN_TURN
  }

  /**
   * A call was refused, or broke a limit. Many of them end a connection that never brought a right token.
   * @param calls how many calls it counts as
   */
  countRefusal(calls = 1): void {
    if (this.accepted) {
      this.explained.bytes += CALL_FRAMES_BYTES
      return
    }
    this.#refused += calls
    if (this.#refused < MAX_REFUSED_CALLS && refusedInTurn.next() <= MAX_REFUSED_IN_TURN) return
    // At once: hundreds of calls may have come with the same read of the socket.
    this.#session.destroy(new Error('No call of this connection was let in'), NGHTTP2_ENHANCE_YOUR_CALM)
  }

  expired(): void {
    this.#session.close()
    // Until its client reads what was written, such a session is not over.
    setTimeout(() => {
      if (this.#openCalls === 0) this.#session.destroy()
    }, FAREWELL_MS).unref()
  }
}

/** Address and port of a client, as grpc-js writes them: `127.0.0.1:50000`; `unknown` on a Unix socket. */
export function peerOf({ remoteAddress, remotePort }: Pick<Socket, 'remoteAddress' | 'remotePort'>): string {
  return remoteAddress === undefined ? 'unknown' : `${remoteAddress}:${remotePort}`
}

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
