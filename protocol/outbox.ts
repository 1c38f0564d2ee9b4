import type { Socket } from 'node:net'
import { encode } from './codec.ts'
import { isPlainItem, ITEM_FRAME_BYTES, writeItemFrame } from './item-frame.ts'
import type { FromWorker, ToWorker } from './messages.ts'

/** With this many requests or answers, or bytes, a turn is cut: both processes shall work at the same time. */
const ENOUGH_MESSAGES = 8
const ENOUGH_BYTES = 16_384
/** Frames are collected in a buffer of this size. */
const BUFFER_BYTES = 65_536
/** A frame from this size on is not copied into it. */
const LARGE_FRAME_BYTES = 16_384

/** Frames that wait for the end of the turn, joined as they come, so that a turn is one write whatever their number. */
export class Outbox {
  #buffer: Buffer | undefined
  #used = 0
  /** What was before the buffer's content and does not fit in it. */
  #earlier: Buffer[] = []
  #earlierBytes = 0
  /** Messages since the last flush, other than items of streams. */
  #messages = 0

  get bytes(): number {
    return this.#earlierBytes + this.#used
  }

  /** Whether the other side could well begin with what is here, instead of waiting for the end of the turn. */
  get isWorthSending(): boolean {
    return this.#messages >= ENOUGH_MESSAGES || this.bytes >= ENOUGH_BYTES
  }

  add(message: ToWorker | FromWorker): void {
    if (message.type === 'response' && isPlainItem(message)) {
      const room = this.#room(ITEM_FRAME_BYTES + message.body.byteLength)
      this.#used = writeItemFrame(room, this.#used, message.id, message.body)
      return
    }
    this.#messages += 1
    const frame = encode(message)
    if (frame.byteLength >= LARGE_FRAME_BYTES) {
      this.#addLarge(frame)
      return
    }
    const room = this.#room(frame.byteLength)
    room.set(frame, this.#used)
    this.#used += frame.byteLength
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
      // What the kernel has not taken still lies in the buffer: the next turn needs another.
      if (socket.writableLength > 0) this.#buffer = undefined
      this.#used = 0
    }
  }

  /** A buffer with that much room from `#used` on. */
  #room(bytes: number): Buffer {
    if (this.#buffer !== undefined && this.#used + bytes <= this.#buffer.byteLength) return this.#buffer
    this.#closeBuffer()
    return (this.#buffer = Buffer.allocUnsafeSlow(Math.max(BUFFER_BYTES, bytes)))
  }

  #addLarge(frame: Buffer): void {
    this.#closeBuffer()
    this.#earlier.push(frame)
    this.#earlierBytes += frame.byteLength
  }

  /** What the buffer holds goes before what comes next; its rest is used on. */
  #closeBuffer(): void {
    if (this.#used === 0 || this.#buffer === undefined) return
    this.#earlier.push(this.#buffer.subarray(0, this.#used))
    this.#earlierBytes += this.#used
    this.#buffer = this.#buffer.subarray(this.#used)
    this.#used = 0
  }
}
