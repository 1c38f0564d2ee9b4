import type { Socket } from 'node:net'
import { encode } from './codec.ts'
import { LENGTH_BYTES } from './frame.ts'
import { ITEM_FRAME_BYTES, writeItemFrame } from './item-frame.ts'
import type { FromWorker, ToWorker } from './messages.ts'
import { predictRoom, writePredict } from './predict-frame.ts'
import { responseRoom, writeResponse } from './response-frame.ts'
import { Writer } from './wire-pieces.ts'

/** With this many requests or answers, or bytes, a turn is cut: both processes shall work at the same time. */
const ENOUGH_MESSAGES = 16
const ENOUGH_BYTES = 32_768
/** Frames are collected in a buffer of this size. */
const BUFFER_BYTES = 65_536
const MAX_SPARE = 4
/** A frame from this size on is not copied into it. */
const LARGE_FRAME_BYTES = 16_384

const NO_BYTES = Buffer.alloc(0)

/** Frames that wait for the end of the turn, joined as they come, so that a turn is one write whatever their number. */
export class Outbox {
  #buffer: Buffer | undefined
  #used = 0
  readonly #writer = new Writer(NO_BYTES, 0)
  /** Whole buffers that the kernel has taken. */
  readonly #spare: Buffer[] = []
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
    this.#messages += 1
    if (this.#addHot(message)) return
    const frame = encode(message)
    if (frame.byteLength >= LARGE_FRAME_BYTES) {
      this.#addLarge(frame)
      return
    }
    const room = this.#room(frame.byteLength)
    room.set(frame, this.#used)
    this.#used += frame.byteLength
  }

  /** An item of a stream; see Channel.sendItem. `id` is a uint32. */
  addItem(id: number, body: Uint8Array): void {
    const size = body.byteLength
    if (size < LARGE_FRAME_BYTES) {
      this.#used = writeItemFrame(this.#room(ITEM_FRAME_BYTES + size), this.#used, id, body)
    } else {
      this.add({ type: 'response', id, body, ts_stream_next: 'true' })
    }
  }

  /** Writes the frequent messages in place; false: it is another, or one that is not worth copying. */
  #addHot(message: ToWorker | FromWorker): boolean {
    if (message.type !== 'response' && message.type !== 'predict') return false
    const room = message.type === 'response' ? responseRoom(message) : predictRoom(message)
    if (room === undefined || room > BUFFER_BYTES) return false
    const buffer = this.#room(room)
    const start = this.#used
    this.#writer.buffer = buffer
    this.#writer.at = start + LENGTH_BYTES
    if (message.type === 'response') writeResponse(this.#writer, message)
    else writePredict(this.#writer, message)
    this.#used = this.#writer.at
    buffer.writeUInt32BE(this.#used - start - LENGTH_BYTES, start)
    return true
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
      this.#writeBuffer(socket, this.#buffer!)
    }
  }

  /** What the kernel does not take at once still lies in the buffer: the next turn gets another, and this one comes back. */
  #writeBuffer(socket: Socket, buffer: Buffer): void {
    let taken = false
    socket.write(buffer.subarray(0, this.#used), () => {
      if (taken && buffer.byteLength === BUFFER_BYTES && this.#spare.length < MAX_SPARE)
        this.#spare.push(buffer)
    })
    this.#used = 0
    if (socket.writableLength === 0) return
    taken = true
    this.#buffer = undefined
  }

  /** A buffer with that much room from `#used` on. */
  #room(bytes: number): Buffer {
    if (this.#buffer !== undefined && this.#used + bytes <= this.#buffer.byteLength) return this.#buffer
    this.#closeBuffer()
    const spare = bytes <= BUFFER_BYTES ? this.#spare.pop() : undefined
    return (this.#buffer = spare ?? Buffer.allocUnsafeSlow(Math.max(BUFFER_BYTES, bytes)))
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
