import { ServeError } from '../common/errors.ts'
import { UnreadBytes } from '../common/byte-flow.ts'

/**
 * The header of a frame, big-endian: u32 length of the payload, u8 type, u8 flags, u32 id of the request (0:
 * none). The payload follows. docs/internals/architecture.md has the table of all frames.
 */
export const HEADER_BYTES = 10
const TYPE_AT = 4
const FLAGS_AT = 5
const ID_AT = 6

/** W: to the worker, F: from it. */
export const FRAME = {
  ready: 1, // F map; the first frame, which never changes its form
  load: 2, // W map
  loaded: 3, // F map
  predict: 4, // W flag AFTER: u32 n, map of n bytes, the bytes of all parts
  response: 5, // F flags STREAM, NEXT, HEAD: [u32 n, map of n bytes] body
  failure: 6, // F map
  credit: 7, // W u32 bytes that the client has read; F u32 inputs that the handler has asked for
  input: 8, // W flag MORE: bytes
  cancel: 9, // W u8 reason
  finished: 10, // F
  log: 11, // F map
  metric: 12, // F map
  ping: 13, // W id: nonce
  pong: 14, // F id: nonce
  unload: 15, // W
  withdraw: 16, // W map
  withdrawn: 17, // F map
  sequenceEnd: 18, // W map
  alive: 19, // F
} as const

export type FrameType = (typeof FRAME)[keyof typeof FRAME]

/** Flags of `response`. STREAM and NEXT: "true", an item; STREAM: "false", the last item; neither: unary. */
export const STREAM = 1
export const NEXT = 2
/** The payload begins with a u32 and a map of so many bytes: status, reason, content type, headers. */
export const HEAD = 4
/** The flags of a stream item with a body only, which is the most frequent frame. */
export const ITEM = STREAM | NEXT
/** Of `input`: the payload is an input, and more may follow. Without it: there are no more. */
export const MORE = 2
/** Of `predict`: the batch begins when everything before it has ended. */
export const AFTER = 1

/** Writes a header at the position; `length` is the size of the payload. */
export function writeHeader(
  frame: Buffer,
  at: number,
  length: number,
  type: FrameType,
  flags: number,
  id: number,
): void {
  frame.writeUInt32BE(length, at)
  frame[at + TYPE_AT] = type
  frame[at + FLAGS_AT] = flags
  frame.writeUInt32BE(id, at + ID_AT)
}

/** The type of the frame that begins at the position; it may be unknown. */
export function typeAt(chunk: Uint8Array, at: number): number {
  return chunk[at + TYPE_AT]!
}

export function flagsAt(chunk: Uint8Array, at: number): number {
  return chunk[at + FLAGS_AT]!
}

export function idAt(chunk: Buffer, at: number): number {
  return chunk.readUInt32BE(at + ID_AT)
}

/** One complete frame: the bytes from..to of a chunk, which begin with the header. */
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
  #wanted = HEADER_BYTES

  /**
   * @param maxFrameBytes the longest payload
   * @param isPaused asked after each frame: whether the next ones are left to the caller; default: never
   */
  constructor(maxFrameBytes: number, onFrame: OnFrame, isPaused = (): boolean => false) {
    this.#maxFrameBytes = maxFrameBytes
    this.#onFrame = onFrame
    this.#isPaused = isPaused
  }

  /**
   * Returns how many bytes of the chunk were read: all, unless `isPaused` said so.
   * @throws ServeError PROTOCOL when a frame is too long; the stream cannot be used after that
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
      const size = HEADER_BYTES + this.#lengthAt(bytes, 0)
      if (bytes.length === size) {
        this.#onFrame(bytes, 0, size)
        return offset
      }
      this.#keep(bytes, 0, size)
    }
  }

  #cut(chunk: Buffer, from: number): number {
    const size = chunk.length
    const onFrame = this.#onFrame
    let offset = from
    while (offset < size && !this.#isPaused()) {
      if (size - offset < HEADER_BYTES) {
        this.#keep(chunk, offset, HEADER_BYTES)
        return size
      }
      const wanted = HEADER_BYTES + this.#lengthAt(chunk, offset)
      if (offset + wanted > size) {
        this.#keep(chunk, offset, wanted)
        return size
      }
      onFrame(chunk, offset, offset + wanted)
      offset += wanted
    }
    return offset
  }

  #keep(chunk: Buffer, offset: number, wanted: number): void {
    this.#unread.keep(chunk, offset)
    this.#wanted = wanted
  }

  #lengthAt(chunk: Buffer, at: number): number {
    const length = chunk.readUInt32BE(at)
    if (length <= this.#maxFrameBytes) return length
    throw new ServeError('PROTOCOL', `A frame of ${length} bytes exceeds the limit of ${this.#maxFrameBytes}`)
  }
}
