import type { Socket } from 'node:net'
import type { ClientAdmission } from '../admission/admission.ts'
import type { Lease } from '../admission/budget.ts'
import { sendAnswers } from './chunk-writer.ts'
import type { SafeResponse } from './safe-response.ts'

/** Requests of one connection that may wait for the answers before them. */
const MAX_WAITING = 100

/**
 * The requests of one connection that came before the answer to an earlier one was complete. They are handled
 * one at a time, each in a turn of the event loop of its own: Node tells of all requests in a piece of 64 KiB
 * in one turn. A client that sends too many loses the connection (RFC 9112, section 9.3.2).
 */
export class Pipeline {
  readonly #socket: Socket
  readonly #waiting: Lease
  readonly #cuts: ClientAdmission['cuts']

  constructor(socket: Socket, { waiting, cuts }: ClientAdmission) {
    this.#socket = socket
    this.#cuts = cuts
    this.#waiting = waiting.lease(socket.remoteAddress)
    this.#waiting.limit = MAX_WAITING
    socket.once('close', () => this.#waiting.close())
  }

  /** Handles the request of the response in its turn, unless its client leaves before. */
  take(res: SafeResponse, handle: () => void): void {
    if (this.#waiting.take(1) === undefined) {
      res.once('socket', () => setImmediate(() => this.#next(handle)))
      return
    }
    sendAnswers()
    this.#cuts.tell('pipelining', this.#socket)
    this.#socket.destroy()
    stopParser(this.#socket)
  }

  #next(handle: () => void): void {
    if (this.#socket.destroyed) return
    this.#waiting.give(1)
    handle()
  }
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
