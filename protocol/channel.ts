import type { Socket } from 'node:net'
import { ServeError } from '../common/errors.ts'
import { decodeFromWorker, decodeToWorker, encode } from './codec.ts'
import { flagsAt, FRAME, FrameDecoder, HEADER_BYTES, idAt, ITEM, typeAt } from './frame.ts'
import type { FromWorker, ToWorker } from './messages.ts'
import { Outbox } from './outbox.ts'

/** So many sends in a row leave at once, because their sender may compute next. */
const EARLY_SENDS = 5
/** A row of sends ends with a pause of this many milliseconds: the sender computes. */
const PAUSE_MS = 0.5
/** After senders have held the event loop for this many milliseconds, they yield to other work. */
const LONG_TURN_MS = 10
/** In a turn of this many milliseconds, messages may have arrived that should be handled first. */
const SHORT_TURN_MS = 1

const NO_BYTES = new Uint8Array(0)

export interface ChannelEvents<In> {
  /** @param bytes of its frame */
  onMessage(message: In, bytes: number): void
  /** Called once, when the socket has closed. `error` is set unless the socket ended normally. */
  onClose(error?: ServeError): void
}

/**
 * Takes a stream item that consists of a body only: the bytes from..to of `chunk`, valid until this returns.
 * This is the most frequent message, so no object is made for it. `arrivedAt` is when the chunk arrived, by
 * performance.now(); default: now.
 */
export type TakeItem = (id: number, chunk: Buffer, from: number, to: number, arrivedAt?: number) => void

export interface FrontendEvents extends ChannelEvents<FromWorker> {
  /** Other messages go to `onMessage`. */
  onItem: TakeItem
}

/**
 * A socket that carries messages. Messages of one turn of the event loop leave in one write. Who pauses the
 * socket in `onMessage` gets no further message until it is resumed. A protocol violation, or an exception
 * in `onMessage`, closes the channel, because nothing after it can be trusted.
 */
export class Channel<Out extends ToWorker | FromWorker> {
  readonly #socket: Socket
  readonly #outbox = new Outbox()
  #flushing = false
  #turnStart = 0
  #lastSend = 0
  /** Sends of the row that have left at once. */
  #early = 0
  #nextTurn: Promise<void> | undefined
  #error: ServeError | undefined

  constructor(
    socket: Socket,
    maxFrameBytes: number,
    onFrame: (chunk: Buffer, from: number, to: number, arrivedAt: number) => void,
    onClose: ChannelEvents<never>['onClose'],
  ) {
    this.#socket = socket
    let arrivedAt = 0
    const decoder = new FrameDecoder(
      maxFrameBytes,
      (chunk, from, to) => {
        if (this.#error === undefined) onFrame(chunk, from, to, arrivedAt)
      },
      () => socket.isPaused(),
    )
    socket.on('data', (chunk: Buffer) => {
      arrivedAt = performance.now()
      this.#turnBegins(arrivedAt)
      this.#early = 0
      try {
        if (this.#error !== undefined) return
        const bytes = decoder.push(chunk)
        if (bytes < chunk.length) socket.unshift(chunk.subarray(bytes))
      } catch (thrown) {
        this.close(ServeError.from(thrown))
      }
    })
    socket.on('error', (error) => {
      this.#error ??= new ServeError('WORKER_LOST', error.message, { cause: error })
    })
    socket.once('close', () => {
      onClose(this.#error)
    })
  }

  /** Bytes that `send` accepted and the kernel has not taken yet. */
  get unsentBytes(): number {
    return this.#socket.writableLength + this.#outbox.bytes
  }

  send(message: Out): void {
    if (!this.#socket.writable) return
    encode(this.#outbox, message)
    this.#sendSoon()
  }

  /** Sends a stream item with only a body: {type: "response", id, body, ts_stream_next: "true"}. */
  sendItem(id: number, body: Uint8Array): void {
    if (!this.#socket.writable) return
    this.#outbox.add(FRAME.response, ITEM, id, body)
    this.#sendSoon()
  }

  #sendSoon(): void {
    if (this.#outbox.isWorthSending) this.#outbox.flush(this.#socket)
    if (this.#flushing) return
    this.#flushing = true
    setImmediate(this.#flush)
  }

  /**
   * To be called after each send of a sender that may compute next without yielding. The first sends of a row
   * leave at once; a row begins after a pause, and when messages have arrived. Undefined while sends follow
   * each other quickly and this turn of the event loop is short; else a promise for the next turn, in which
   * received messages are handled.
   */
  flushEarly(): Promise<void> | undefined {
    const now = performance.now()
    const paused = now - this.#lastSend >= PAUSE_MS
    this.#lastSend = now
    if (paused) this.#early = 0
    if (this.#early < EARLY_SENDS && this.#outbox.bytes > 0) {
      this.#early += 1
      this.#flushNow()
    }
    if (!paused && now - this.#turnStart < LONG_TURN_MS) return undefined
    return (this.#nextTurn ??= nextTurn().then(() => {
      this.#nextTurn = undefined
      this.#turnBegins(performance.now())
    }))
  }

  /**
   * Writes everything now. Returns a promise if the kernel has not taken it all, or if the turn was not
   * short. It resolves when the kernel has taken it, and messages that had arrived were handled.
   */
  flush(): Promise<void> | undefined {
    this.#flushNow()
    const taken = this.#socket.writableLength === 0 || !this.#socket.writable
    return taken && performance.now() - this.#turnStart < SHORT_TURN_MS ? undefined : this.#flushed()
  }

  /** Two turns, because the first may belong to a poll that is over. */
  async #flushed(): Promise<void> {
    await nextTurn()
    await nextTurn()
    this.#turnStart = performance.now()
    if (this.#socket.writableLength > 0) await written(this.#socket)
  }

  /** Closes after pending messages were sent; with an error, at once. */
  close(error?: ServeError): void {
    this.#error ??= error
    if (error !== undefined) {
      this.#socket.destroy()
      return
    }
    this.#outbox.flush(this.#socket)
    this.#socket.end()
  }

  #turnBegins(now: number): void {
    this.#turnStart = this.#lastSend = now
  }

  readonly #flush = (): void => {
    this.#flushing = false
    this.#flushNow()
  }

  #flushNow(): void {
    if (this.#socket.writable) this.#outbox.flush(this.#socket)
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** Resolves when the kernel has everything that was written before, or the socket is closed. */
function written(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.write(NO_BYTES, () => resolve())
  })
}

/** The frontend's end of a worker socket. */
export function frontendChannel(
  socket: Socket,
  maxFrameBytes: number,
  events: FrontendEvents,
): Channel<ToWorker> {
  return new Channel(
    socket,
    maxFrameBytes,
    (chunk, from, to, arrivedAt) => {
      if (typeAt(chunk, from) === FRAME.response && flagsAt(chunk, from) === ITEM)
        events.onItem(idAt(chunk, from), chunk, from + HEADER_BYTES, to, arrivedAt)
      else events.onMessage(decodeFromWorker(chunk, from, to), to - from)
    },
    (error) => events.onClose(error),
  )
}

/** The worker's end of a worker socket. */
export function workerChannel(
  socket: Socket,
  maxFrameBytes: number,
  events: ChannelEvents<ToWorker>,
): Channel<FromWorker> {
  return new Channel(
    socket,
    maxFrameBytes,
    (chunk, from, to) => events.onMessage(decodeToWorker(chunk, from, to), to - from),
    (error) => events.onClose(error),
  )
}
