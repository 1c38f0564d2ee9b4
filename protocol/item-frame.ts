import { SOCKET_READ_BYTES } from '../common/unread-bytes.ts'
import { LENGTH_BYTES } from './frame.ts'

/**
 * The frame of a stream item, the most frequent frame: {type: "response", id: uint32, ts_stream_next: "true",
 * body: bin32}, in the same bytes that response-frame.ts writes for such a message. All fields have fixed
 * positions, so the frame is filled in and compared as bytes, without a codec.
 */
const BEFORE_ID = Buffer.from('\x84\xa4type\xa8response\xa2id\xce', 'latin1')
const AFTER_ID = Buffer.from('\xaets_stream_next\xa4true\xa4body\xc6', 'latin1')

const BEFORE_ID_WORDS = wordsOf(BEFORE_ID)
const AFTER_ID_WORDS = wordsOf(AFTER_ID)

const ID_AT = BEFORE_ID.length
const AFTER_ID_AT = ID_AT + 4
const SIZE_AT = AFTER_ID_AT + AFTER_ID.length
/** Bytes of the map before the body. */
const HEAD_BYTES = SIZE_AT + 4

/** Where the body begins in the map. */
export const ITEM_BODY_AT = HEAD_BYTES

/** Size of an item's frame without its body, including the frame's length. */
export const ITEM_FRAME_BYTES = LENGTH_BYTES + HEAD_BYTES

const TEMPLATE = Buffer.concat([
  Buffer.alloc(LENGTH_BYTES),
  BEFORE_ID,
  Buffer.alloc(4),
  AFTER_ID,
  Buffer.alloc(4),
])

/** Writes the frame into `target`, which must have room; returns the end position. */
export function writeItemFrame(target: Buffer, at: number, id: number, body: Uint8Array): number {
  const size = body.length
  target.set(TEMPLATE, at)
  writeUint32(target, at, HEAD_BYTES + size)
  writeUint32(target, at + LENGTH_BYTES + ID_AT, id)
  writeUint32(target, at + LENGTH_BYTES + SIZE_AT, size)
  target.set(body, at + ITEM_FRAME_BYTES)
  return at + ITEM_FRAME_BYTES + size
}

/** Whether bytes from..to of `chunk` are such a map; if not, the general codec reads them. */
export function isItemFrame(chunk: Buffer, from: number, to: number): boolean {
  const view = viewOf(chunk)
  return (
    to - from >= HEAD_BYTES &&
    matches(view, from, BEFORE_ID_WORDS) &&
    matches(view, from + AFTER_ID_AT, AFTER_ID_WORDS) &&
    view.getUint32(from + SIZE_AT) === to - from - HEAD_BYTES
  )
}

/** The request id of the item. */
export function itemId(chunk: Buffer, from: number): number {
  return viewOf(chunk).getUint32(from + ID_AT)
}

/** Bytes as 32-bit words, which compare in half the time. The last word may overlap the one before. */
interface Words {
  readonly words: Int32Array
  readonly lastAt: number
  readonly last: number
}

function wordsOf(bytes: Buffer): Words {
  const words = Int32Array.from({ length: bytes.length >> 2 }, (_, i) => bytes.readInt32BE(4 * i))
  const lastAt = bytes.length - 4
  return { words, lastAt, last: bytes.readInt32BE(lastAt) }
}

function matches(view: DataView, at: number, { words, lastAt, last }: Words): boolean {
  for (let i = 0; i < words.length; i += 1) if (view.getInt32(at + 4 * i) !== words[i]) return false
  return view.getInt32(at + lastAt) === last
}

/** The chunk that items are being taken from, and its view. */
let viewed: Buffer | undefined
let lastView: DataView

/** Making a view costs more than to read an item with it. A large chunk is not kept for the next item. */
function viewOf(chunk: Buffer): DataView {
  if (chunk === viewed) return lastView
  const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.length)
  if (chunk.length > SOCKET_READ_BYTES) return view
  viewed = chunk
  lastView = view
  return view
}

function writeUint32(target: Buffer, at: number, value: number): void {
  target[at] = value >>> 24
  target[at + 1] = value >>> 16
  target[at + 2] = value >>> 8
  target[at + 3] = value
}
