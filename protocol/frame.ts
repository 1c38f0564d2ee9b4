import { ServeError } from '../common/errors.ts'
import { UnreadBytes } from '../common/unread-bytes.ts'

/** Every frame begins with its length: an unsigned 32-bit big-endian number that does not count itself. */
export const LENGTH_BYTES = 4

/** Writes the length into the first four bytes of a frame that already contains its body. */
export function writeLength(frame: Uint8Array): void {
  const length = frame.length - LENGTH_BYTES
  frame[0] = length >>> 24
  frame[1] = length >>> 16
  frame[2] = length >>> 8
  frame[3] = length
}

function readLength(chunk: Buffer, at: number): number {
  return chunk[at]! * 0x1000000 + ((chunk[at + 1]! << 16) | (chunk[at + 2]! << 8) | chunk[at + 3]!)
}

/** One complete frame: the bytes from..to of a chunk. */
export type OnFrame = (chunk: Buffer, from: number, to: number) => void

/**
 * Splits a byte stream into frames. It accepts chunks of any size and calls back once per complete frame, in
 * order. A frame within one chunk is passed on in place (no copy). The announced length is checked before
 * anything is kept, so memory stays below `maxFrameBytes` plus one chunk.
 */
export class FrameDecoder {
  readonly #maxFrameBytes: number
  readonly #onFrame: OnFrame
  readonly #isPaused: () => boolean
  readonly #unread = new UnreadBytes()
  #wanted = LENGTH_BYTES

  /** @param isPaused asked after each frame: whether the next ones are left to the caller; default: never */
  constructor(maxFrameBytes: number, onFrame: OnFrame, isPaused = (): boolean => false) {
    this.#maxFrameBytes = maxFrameBytes
    this.#onFrame = onFrame
    this.#isPaused = isPaused
  }

  /**
   * Returns how many bytes of the chunk were read: all, unless `isPaused` said so.
   * @throws ServeError PROTOCOL when a frame is empty or too long; the stream cannot be used after that
   */
  push(chunk: Buffer): number {
    return this.#cut(chunk, this.#unread.bytes === 0 ? 0 : this.#complete(chunk))
  }

  /** Ends the frame that was begun. Returns where it ends in the chunk: only its bytes are copied. */
  #complete(chunk: Buffer): number {
    let offset = 0
    for (;;) {
      const end = offset + this.#wanted - this.#unread.bytes
      const bytes = this.#unread.join(chunk.subarray(offset, end), this.#wanted)
      if (bytes === undefined) return chunk.length
      offset = end
      if (bytes.length > LENGTH_BYTES) {
        this.#onFrame(bytes, LENGTH_BYTES, bytes.length)
        return offset
      }
      this.#keep(bytes, 0, LENGTH_BYTES + this.#checked(readLength(bytes, 0)))
    }
  }

  #cut(chunk: Buffer, from: number): number {
    const size = chunk.length
    const onFrame = this.#onFrame
    let offset = from
    while (offset < size && !this.#isPaused()) {
      if (size - offset < LENGTH_BYTES) {
        this.#keep(chunk, offset, LENGTH_BYTES)
        return size
      }
      const length = this.#checked(readLength(chunk, offset))
      const end = offset + LENGTH_BYTES + length
      if (end > size) {
        this.#keep(chunk, offset, LENGTH_BYTES + length)
        return size
      }
      onFrame(chunk, offset + LENGTH_BYTES, end)
      offset = end
    }
    return offset
  }

  #keep(chunk: Buffer, offset: number, wanted: number): void {
    this.#unread.keep(chunk, offset)
    this.#wanted = wanted
  }

  #checked(length: number): number {
    if (length > this.#maxFrameBytes) {
      throw new ServeError(
        'PROTOCOL',
        `A frame of ${length} bytes exceeds the limit of ${this.#maxFrameBytes}`,
      )
    }
    if (length === 0) throw new ServeError('PROTOCOL', 'A frame must not be empty')
    return length
  }
}
