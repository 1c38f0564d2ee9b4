import type { Socket } from 'node:net'
import type { CheckedConnection } from './page-check.ts'
import type { ClientAdmission } from '../admission/admission.ts'
import type { Lease } from '../admission/budget.ts'
import { sendAnswers } from './chunk-writer.ts'
import type { SafeResponse } from './safe-response.ts'

/** Requests of one connection that may wait for the answers before them. */
const MAX_WAITING = 100

/** Milliseconds that a finished response may stay unread. */
export const UNREAD_LIMIT_MS = 60_000

/** An unfinished reply that must learn when its client disconnects. */
export interface LiveReply {
  clientLeft(): void
}

/** What the server tracks of a client's connection besides Node. */
export class Connection implements CheckedConnection {
  checkedHost: string | undefined = undefined
  /** Whether it closes after the answers that are due: bytes came that are not a request, or one is late. */
  isEnding = false
  /** The client's address, also when it has gone; undefined: it came over a Unix socket. */
  readonly address: string | undefined
  readonly #socket: Socket
  #live: LiveReply | undefined
  #peer: string | undefined
  /** Requests that wait for the answers before them. */
  #waiting: Lease | undefined
  /** Bytes of answers that wait for the client. */
  #unread: Lease | undefined
  /** Bytes of a body that has not come to its end. */
  #body: Lease | undefined

  constructor(socket: Socket) {
    this.#socket = socket
    this.address = socket.remoteAddress
    // Listeners per connection, not per request. A FIN appears as `end` (also from a client that has stopped
    // reading), a reset as `close`, a broken upload as either.
    const leave = (): void => this.#leave()
    socket.on('end', leave).on('close', leave)
  }

  /**
   * For the access log: `/127.0.0.1:50000`. A client on a Unix socket has no address and appears as
   * 127.0.0.1, as in TorchServe.
   */
  get peer(): string {
    return (this.#peer ??= peerOf(this.#socket))
  }

  /**
   * Handles a request that came before the answer to an earlier one was complete, once it is its turn: one at
   * a time, each in a turn of the event loop of its own, because Node reads all requests of a piece of 64 KiB
   * in one. A client that sends too many loses the connection (RFC 9112, section 9.3.2).
   */
  takeInTurn(res: SafeResponse, { waiting, cuts }: ClientAdmission, handle: () => void): void {
    const socket = this.#socket
    if (socket.destroyed) return
    if (this.#waiting === undefined) {
      this.#waiting = waiting.lease(this.address)
      this.#waiting.limit = MAX_WAITING
    }
    const lease = this.#waiting
    if (lease.take(1) !== undefined) {
      sendAnswers()
      cuts.tell('pipelining', socket)
      socket.destroy()
      stopParser(socket)
      return
    }
    const next = (): void => {
      lease.give(1)
      if (!socket.destroyed) handle()
    }
    res.once('socket', () => setImmediate(next))
  }

  /** What waits in its socket, once that is full, counts until the client has read it. */
  leavesUnread({ answers, cuts }: ClientAdmission): void {
    const socket = this.#socket
    if (socket.destroyed || !socket.writableNeedDrain) return
    const lease = (this.#unread ??= answers.lease(this.address))
    if (lease.held === 0) socket.once('drain', () => lease.give(lease.held))
    const more = socket.writableLength - lease.held
    if (more <= 0) lease.give(-more)
    else if (lease.take(more) !== undefined) {
      cuts.tell('unread', socket)
      socket.destroy()
    }
  }

  /**
   * What a body holds that has not come to its end counts until then.
   * @param bytes that it holds now
   * @returns false if there is no room for it
   */
  holdsBody({ requests }: ClientAdmission, bytes: number): boolean {
    const lease = (this.#body ??= requests.lease(this.address))
    return lease.take(bytes - lease.held) === undefined
  }

  bodyEnded(): void {
    this.#body?.give(this.#body.held)
  }

  /** Whether a reply is under way. */
  get answering(): boolean {
    return this.#live !== undefined
  }

  /** Returns false if the client has already disconnected. */
  add(reply: LiveReply): boolean {
    if (this.#socket.destroyed || this.#socket.readableEnded) return false
    this.#live = reply
    return true
  }

  remove(reply: LiveReply): void {
    if (this.#live === reply) this.#live = undefined
  }

  #leave(): void {
    if (this.#socket.destroyed) {
      this.#body?.close()
      this.#unread?.close()
      this.#waiting?.close()
    }
    const reply = this.#live
    if (reply === undefined) return
    this.#live = undefined
    reply.clientLeft()
    // A client that closed its side without reading on would keep the socket until everything is flushed,
    // which never happens.
    this.#socket.destroy()
  }
}

const connections = new WeakMap<Socket, Connection>()

/** The connection of a socket. From its first request on, the server watches for a disconnect. */
export function connectionOf(socket: Socket): Connection {
  let connection = connections.get(socket)
  if (connection === undefined) {
    connection = new Connection(socket)
    connections.set(socket, connection)
  }
  return connection
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return remoteAddress === undefined ? '127.0.0.1' : `/${remoteAddress}:${remotePort}`
}

/** What Node's parser takes for the end of what it has to parse. */
const STOP = 2

/**
 * Ends the parsing of what was read from a connection, at its next request: Node goes on to make requests of
 * the rest of it, up to thousands, although the socket is destroyed. `onIncoming` is not public, and
 * node-internals.test.ts checks it too; without it the rest is parsed, which costs time only.
 */
export function stopParser(socket: Socket): void {
  const { parser } = socket as { parser?: { onIncoming?: () => number } | null }
  if (typeof parser?.onIncoming === 'function') parser.onIncoming = () => STOP
}
