import type { Socket } from 'node:net'
import { encode } from './codec.ts'
import { LENGTH_BYTES } from './frame.ts'
import { ITEM_FRAME_BYTES, writeItemFrame } from './item-frame.ts'
import type { FromWorker, PredictMessage, ResponseMessage, ToWorker } from './messages.ts'
import { predictRoom, writePredict } from './predict-frame.ts'
import { responseRoom, writeResponse } from './response-frame.ts'
import { Writer } from './wire-pieces.ts'

/**
 * After this many requests or responses, or this many bytes, the outbox flushes within a turn, so that both
 * processes work at the same time.
 */
const ENOUGH_MESSAGES = 16
const ENOUGH_BYTES = 32_768
/** Size of the buffer in which frames are collected. */
const BUFFER_BYTES = 65_536
const MAX_SPARE = 4
/** Frames of this size or more are not copied into the buffer. */
const LARGE_FRAME_BYTES = 16_384

const NO_BYTES = Buffer.alloc(0)

/** Collects frames until the end of the turn and joins them, so that a turn causes one write. */
export class Outbox {
  #buffer: Buffer | undefined
  #used = 0
  readonly #writer = new Writer(NO_BYTES, 0)
  /** Buffers of full size that the kernel has taken and that can be reused. */
  readonly #spare: Buffer[] = []
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

  add(message: ToWorker | FromWorker): void {
    this.#messages += 1
    if (this.#addHot(message)) return
    const frame = encode(message)
    if (frame.length >= LARGE_FRAME_BYTES) {
      this.#addLarge(frame)
      return
    }
    const room = this.#room(frame.length)
    room.set(frame, this.#used)
    this.#used += frame.length
  }

  /** A stream item; see Channel.sendItem. `id` is a uint32. */
  addItem(id: number, body: Uint8Array): void {
    const size = body.length
    if (size < LARGE_FRAME_BYTES) {
      this.#used = writeItemFrame(this.#room(ITEM_FRAME_BYTES + size), this.#used, id, body)
    } else {
      this.add({ type: 'response', id, body, ts_stream_next: 'true' })
    }
  }

  /** Writes a frequent message in place; false if it is of another kind. */
  #addHot(message: ToWorker | FromWorker): boolean {
    if (message.type !== 'response' && message.type !== 'predict') return false
    const room = message.type === 'response' ? responseRoom(message) : predictRoom(message)
    if (room === undefined) return false
    if (room > BUFFER_BYTES) {
      // A buffer of just its size: what grows on demand allocates several times as much.
      const frame = Buffer.allocUnsafeSlow(room)
      this.#addLarge(frame.subarray(0, this.#write(message, frame, 0)))
      this.#writer.buffer = NO_BYTES
    } else {
      this.#used = this.#write(message, this.#room(room), this.#used)
    }
    return true
  }

  /** Writes the frame at `start`, and returns where it ends. */
  #write(message: ResponseMessage | PredictMessage, buffer: Buffer, start: number): number {
    const writer = this.#writer
    writer.buffer = buffer
    writer.at = start + LENGTH_BYTES
    if (message.type === 'response') writeResponse(writer, message)
    else writePredict(writer, message)
    buffer.writeUInt32BE(writer.at - start - LENGTH_BYTES, start)
    return writer.at
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

  /** If the kernel has not taken everything, the next turn uses another buffer and this one returns later. */
  #writeBuffer(socket: Socket, buffer: Buffer): void {
    let taken = false
    socket.write(buffer.subarray(0, this.#used), () => {
      if (taken && buffer.length === BUFFER_BYTES && this.#spare.length < MAX_SPARE) this.#spare.push(buffer)
    })
    this.#used = 0
    if (socket.writableLength === 0) return
    taken = true
    this.#buffer = undefined
  }

  /** A buffer with this much room after `#used`. */
  #room(bytes: number): Buffer {
    if (this.#buffer !== undefined && this.#used + bytes <= this.#buffer.length) return this.#buffer
    this.#closeBuffer()
    const spare = bytes <= BUFFER_BYTES ? this.#spare.pop() : undefined
    return (this.#buffer = spare ?? Buffer.allocUnsafeSlow(Math.max(BUFFER_BYTES, bytes)))
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
