import type { Socket } from 'node:net'
import type { CutWarnings } from '../admission/cut-warnings.ts'
import { sendAnswers } from './chunk-writer.ts'
import type { SafeResponse } from './safe-response.ts'

/** Requests that one connection may have handled before the answer to an earlier one is complete. */
const MAX_AHEAD = 8
/** Further requests of one connection that wait for their turn. */
const MAX_WAITING = 100
/** Requests of all connections that wait for their turn. */
const MAX_WAITING_OF_ALL = 4_096
/** Pipelined requests of all connections that are handled in one turn of the event loop. */
const MAX_PER_TURN = 256

/** Pipelined requests of all connections, of every listener. */
class Pipelines {
  /** Those that wait for answers before theirs, or for their turn after that. */
  waiting = 0
  #handled = 0
  readonly #ready: (() => void)[] = []
  #turn: NodeJS.Immediate | undefined

  /** Whether one more may be handled in this turn, which then counts it. */
  mayHandle(): boolean {
    if (this.#handled === MAX_PER_TURN) return false
    this.#handled += 1
    this.#turn ??= setImmediate(() => this.#nextTurn())
    return true
  }

  handleLater(handle: () => void): void {
    this.#ready.push(handle)
    this.#turn ??= setImmediate(() => this.#nextTurn())
  }

  #nextTurn(): void {
    this.#turn = undefined
    this.#handled = 0
    try {
      for (let left = MAX_PER_TURN; left > 0; left -= 1) this.#ready.shift()?.()
    } finally {
      // Also after one that threw.
      if (this.#ready.length > 0) this.#turn ??= setImmediate(() => this.#nextTurn())
    }
  }
}

const all = new Pipelines()

/**
 * The requests of one connection that came before the answer to an earlier one was complete: bounds what
 * they take of a turn of the event loop, and of memory. Node tells of all requests in a piece of 64 KiB in
 * one turn, and of those of other connections in the same one: they would take it for seconds. Who sends too
 * many loses the connection, as clients that pipeline have to expect (RFC 9112, section 9.3.2).
 */
export class Pipeline {
  readonly #socket: Socket
  /** Those whose requests are handled ahead, in their order: the first gets the socket next. */
  readonly #ahead: SafeResponse[] = []
  #waiting = 0

  constructor(socket: Socket) {
    this.#socket = socket
    socket.once('close', () => {
      all.waiting -= this.#waiting
      this.#waiting = 0
      // Node tells it only of the response that has the socket.
      for (const res of this.#ahead.splice(0)) res.destroy().emit('close')
    })
  }

  /**
   * Handles the request of the response now or later, unless its client leaves before, or sends too many,
   * which `cuts` tells.
   */
  take(res: SafeResponse, handle: () => void, cuts?: CutWarnings): void {
    // It does not overtake those that wait.
    if (this.#waiting === 0 && this.#ahead.length < MAX_AHEAD && all.mayHandle()) {
      this.#ahead.push(res)
      res.once('socket', () => this.#ahead.shift())
      handle()
    } else if (this.#waiting === MAX_WAITING || all.waiting >= MAX_WAITING_OF_ALL) {
      sendAnswers()
      cuts?.tell('pipelining', this.#socket)
      this.#socket.destroy()
      stopParser(this.#socket)
    } else {
      this.#waiting += 1
      all.waiting += 1
      res.once('socket', () => all.handleLater(() => this.#next(handle)))
    }
  }

  #next(handle: () => void): void {
    if (this.#socket.destroyed) return
    this.#waiting -= 1
    all.waiting -= 1
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
