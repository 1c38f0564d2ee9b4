import type { Http2Session } from 'node:http2'
import type { Socket } from 'node:net'
import type { Client } from '../../auth/authorizer.ts'
import type { Limited, TimeLimit } from '../../jobs/time-limit.ts'
import type { ClientAdmission } from '../admission/admission.ts'
import type { Lease } from '../admission/budget.ts'
import { TurnCount } from '../turn-count.ts'
import { type Explained, explainedOf } from '../unexplained-bytes.ts'
import {
  CALL_FRAMES_BYTES,
  FAREWELL_MS,
  MAX_PUBLIC_IN_TURN,
  MAX_REFUSED_CALLS,
  MAX_REFUSED_IN_TURN,
  NGHTTP2_ENHANCE_YOUR_CALM,
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
