import type { Socket } from 'node:net'
import { ServeError } from '../common/errors.ts'
import { decodeFromWorker, decodeToWorker, encode } from './codec.ts'
import {
  flagsAt,
  FRAME,
  FrameDecoder,
  type FrameType,
  HEADER_BYTES,
  idAt,
  ITEM,
  typeAt,
  writeHeader,
} from './frame.ts'
import type { FromWorker, ToWorker } from './messages.ts'

/** So many sends in a row leave at once, because their sender may compute next. */
const EARLY_SENDS = 5
/** A row of sends ends with a pause of this many milliseconds: the sender computes. */
const PAUSE_MS = 0.5
/** After senders have held the event loop for this many milliseconds, they yield to other work. */
const LONG_TURN_MS = 10
/** In a turn of this many milliseconds, messages may have arrived that should be handled first. */
const SHORT_TURN_MS = 1

/**
 * After this many requests or responses, or this many bytes, the outbox flushes within a turn, so that both
 * processes work at the same time.
 */
const ENOUGH_MESSAGES = 16
const ENOUGH_BYTES = 32_768
/** Size of the buffer in which frames are collected. */
const BUFFER_BYTES = 65_536
/** Frames of this size or more have a buffer of their own. */
const LARGE_FRAME_BYTES = 16_384

const NO_BYTES = new Uint8Array(0)
const NOTHING: readonly Uint8Array[] = []

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

  get open(): boolean {
    return this.#socket.writable
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

/** Collects frames until the end of the turn and joins them, so that a turn causes one write. */
export class Outbox {
  #buffer: Buffer | undefined
  #used = 0
  /** Frames that precede the buffer's content and are not in it. */
  #earlier: Buffer[] = []
  #earlierBytes = 0
  /** Messages since the last flush, except stream items. */
  #messages = 0

  get bytes(): number {
    return this.#earlierBytes + this.#used
  }

  /** Whether there is enough to flush now, so that the peer can begin before the turn ends. */
  get isWorthSending(): boolean {
    return this.#messages >= ENOUGH_MESSAGES || this.bytes >= ENOUGH_BYTES
  }

  /** Adds a frame whose payload is `first` and then `rest`; they are copied. `id` is a uint32. */
  add(type: FrameType, flags: number, id: number, first: Uint8Array = NO_BYTES, rest = NOTHING): void {
    if (type !== FRAME.response || flags !== ITEM) this.#messages += 1
    let length = first.length
    for (const piece of rest) length += piece.length
    const size = HEADER_BYTES + length
    const isLarge = size >= LARGE_FRAME_BYTES
    const buffer = isLarge ? Buffer.allocUnsafeSlow(size) : this.#room(size)
    let at = isLarge ? 0 : this.#used
    writeHeader(buffer, at, length, type, flags, id)
    at += HEADER_BYTES
    buffer.set(first, at)
    at += first.length
    for (const piece of rest) {
      buffer.set(piece, at)
      at += piece.length
    }
    if (isLarge) this.#addLarge(buffer)
    else this.#used = at
  }

  /** Hands everything to the socket. */
  flush(socket: Socket): void {
    this.#messages = 0
    if (this.#earlier.length > 0) {
      this.#closeBuffer()
      const frames = this.#earlier
      this.#earlier = []
      this.#earlierBytes = 0
      socket.cork()
      for (const frame of frames) socket.write(frame)
      socket.uncork()
    } else if (this.#used > 0) {
      socket.write(this.#buffer!.subarray(0, this.#used))
      this.#used = 0
      // The kernel may read the rest later, so the next turn uses another buffer.
      if (socket.writableLength > 0) this.#buffer = undefined
    }
  }

  /** A buffer with this much room after `#used`. */
  #room(bytes: number): Buffer {
    if (this.#buffer !== undefined && this.#used + bytes <= this.#buffer.length) return this.#buffer
    this.#closeBuffer()
    return (this.#buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES))
  }

  #addLarge(frame: Buffer): void {
    this.#closeBuffer()
    this.#earlier.push(frame)
    this.#earlierBytes += frame.length
  }

  /** Queues what the buffer holds before the next frame. The rest of the buffer stays in use. */
  #closeBuffer(): void {
    if (this.#used === 0 || this.#buffer === undefined) return
    this.#earlier.push(this.#buffer.subarray(0, this.#used))
    this.#earlierBytes += this.#used
    this.#buffer = this.#buffer.subarray(this.#used)
    this.#used = 0
  }
}
