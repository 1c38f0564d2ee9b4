import type { Socket } from 'node:net'
import { FRAME, type FrameType, HEADER_BYTES, ITEM, writeHeader } from './frame.ts'

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
