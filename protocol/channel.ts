import type { Socket } from 'node:net'
import { decodeFromWorker, decodeToWorker } from './codec.ts'
import { ServeError } from '../common/errors.ts'
import { FrameDecoder, type OnFrame } from './frame.ts'
import { isItemFrame, ITEM_BODY_AT, itemId } from './item-frame.ts'
import type { FromWorker, ToWorker } from './messages.ts'
import { Outbox } from './outbox.ts'

/** A turn of this many milliseconds may have kept messages waiting that should be handled first. */
const SHORT_TURN_MS = 1
/** After senders have held the event loop for this many milliseconds, they yield to other work. */
const LONG_TURN_MS = 10
/** A pause of this many milliseconds between two sends of a turn means that the sender computes. */
const LONG_PAUSE_MS = 0.5
/**
 * So many sends in a row leave at once, because nothing tells whether their sender computes next, and one
 * more after each EARLY_WRITE_MS milliseconds. What is sent faster leaves in one write with what follows.
 */
const EARLY_WRITES = 4
const EARLY_WRITE_MS = 4

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
  #lastAsked = 0
  /** When all early writes are allowed again; in the past if they are. */
  #earlyDue = 0
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
      arrivedAt = this.#turnStart = this.#lastAsked = performance.now()
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

  get open(): boolean {
    return this.#socket.writable
  }

  /** Bytes that `send` accepted and the kernel has not taken yet. */
  get unsentBytes(): number {
    return this.#socket.writableLength + this.#outbox.bytes
  }

  send(message: Out): void {
    if (!this.#socket.writable) return
    this.#outbox.add(message)
    this.#sendSoon()
  }

  /** Sends a stream item with only a body: {type: "response", id, body, ts_stream_next: "true"}. */
  sendItem(id: number, body: Uint8Array): void {
    if (!this.#socket.writable) return
    this.#outbox.addItem(id, body)
    this.#sendSoon()
  }

  #sendSoon(): void {
    if (this.#outbox.isWorthSending) this.#outbox.flush(this.#socket)
    if (this.#flushing) return
    this.#flushing = true
    setImmediate(this.#flush)
  }

  /**
   * To be called after each send of a sender that may compute next without yielding. Its first sends leave
   * at once, and so does each after a pause. Undefined while sends follow each other quickly and this turn of
   * the event loop is short; else a promise for the next turn, in which received messages are handled.
   */
  breather(): Promise<void> | undefined {
    const now = performance.now()
    const pause = now - this.#lastAsked
    this.#lastAsked = now
    if (pause >= LONG_PAUSE_MS || this.#mayWriteEarly(now)) this.#flushNow()
    if (pause < LONG_PAUSE_MS && now - this.#turnStart < LONG_TURN_MS) return undefined
    return (this.#nextTurn ??= new Promise((resolve) => {
      setImmediate(() => {
        this.#nextTurn = undefined
        this.#turnStart = this.#lastAsked = performance.now()
        resolve()
      })
    }))
  }

  /**
   * Writes everything now. Returns a promise if the kernel has not taken it all, or if the turn was not
   * short. It resolves when the kernel has taken it, and messages that had arrived were handled.
   */
  handover(): Promise<void> | undefined {
    this.#flushNow()
    const taken = this.#socket.writableLength === 0 || !this.#socket.writable
    if (taken && performance.now() - this.#turnStart < SHORT_TURN_MS) return undefined
    return this.#handedOver()
  }

  /** Two turns, because the first may belong to a poll that is over. */
  async #handedOver(): Promise<void> {
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

  #mayWriteEarly(now: number): boolean {
    const due = Math.max(this.#earlyDue, now)
    if (due - now > (EARLY_WRITES - 1) * EARLY_WRITE_MS || this.#outbox.bytes === 0) return false
    this.#earlyDue = due + EARLY_WRITE_MS
    return true
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
      if (!isItemFrame(chunk, from, to)) events.onMessage(decodeFromWorker(chunk, from, to), to - from)
      else events.onItem(itemId(chunk, from), chunk, from + ITEM_BODY_AT, to, arrivedAt)
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
  const onFrame: OnFrame = (chunk, from, to) => events.onMessage(decodeToWorker(chunk, from, to), to - from)
  return new Channel(socket, maxFrameBytes, onFrame, (error) => events.onClose(error))
}
