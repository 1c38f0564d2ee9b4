import { LENGTH_BYTES } from './frame.ts'
import type { ResponseMessage } from './messages.ts'
import type { Writer } from './wire-pieces.ts'
import { constant, MARKER, Reader, textRoom } from './wire-pieces.ts'

/**
 * Responses, encoded and decoded by hand: nearly all frames are responses, and a general codec spends most of
 * its time on their keys. The bytes are a standard msgpack map with the keys in this order: type, id,
 * ts_stream_next?, contentType?, status?, body.
 */
const TYPE_AND_ID = constant('type', 'response', 'id', MARKER.uint32)
const NEXT_TRUE = constant('ts_stream_next', 'true')
const NEXT_FALSE = constant('ts_stream_next', 'false')
const CONTENT_TYPE = constant('contentType')
const STATUS = constant('status', MARKER.uint32)
const BODY = constant('body', MARKER.bin32)

/** Upper bound of keys, markers and numbers, in bytes. */
const HEAD_BYTES =
  LENGTH_BYTES +
  1 +
  [TYPE_AND_ID, NEXT_FALSE, CONTENT_TYPE, STATUS, BODY].reduce((sum, piece) => sum + piece.length, 0) +
  3 * 4

const MAP_OF_3 = MARKER.map + 3

/** Upper bound of the frame size, including the length; undefined: the message needs the general codec. */
export function responseRoom(message: ResponseMessage): number | undefined {
  if (message.headers !== undefined || message.reason !== undefined) return undefined
  const { contentType } = message
  return HEAD_BYTES + message.body.length + (contentType === undefined ? 0 : textRoom(contentType))
}

/** Writes the map, without the frame's length. */
export function writeResponse(writer: Writer, message: ResponseMessage): void {
  const { ts_stream_next: next, contentType, status } = message
  writer.byte(MAP_OF_3 + optionalFields(message))
  writer.constant(TYPE_AND_ID)
  writer.uint32(message.id)
  if (next !== undefined) writer.constant(next === 'true' ? NEXT_TRUE : NEXT_FALSE)
  if (contentType !== undefined) {
    writer.constant(CONTENT_TYPE)
    writer.text(contentType)
  }
  if (status !== undefined) {
    writer.constant(STATUS)
    writer.uint32(status)
  }
  writer.constant(BODY)
  writer.bytes(message.body)
}

/** Reads the map; undefined: the frame is of another kind. */
export function readResponse(chunk: Buffer, from: number, to: number): ResponseMessage | undefined {
  const reader = new Reader(chunk, from, to)
  const fields = reader.byte() - MAP_OF_3
  if (!reader.tryConstant(TYPE_AND_ID)) return undefined
  const message: ResponseMessage = { type: 'response', id: reader.uint32(), body: NO_BYTES }
  if (reader.tryConstant(NEXT_TRUE)) message.ts_stream_next = 'true'
  else if (reader.tryConstant(NEXT_FALSE)) message.ts_stream_next = 'false'
  if (reader.tryConstant(CONTENT_TYPE)) message.contentType = reader.text()
  if (reader.tryConstant(STATUS)) message.status = reader.uint32()
  reader.constant(BODY)
  message.body = reader.bytes()
  return reader.ok && reader.at === to && optionalFields(message) === fields ? message : undefined
}

function optionalFields({ ts_stream_next: next, contentType, status }: ResponseMessage): number {
  return Number(next !== undefined) + Number(contentType !== undefined) + Number(status !== undefined)
}

const NO_BYTES = Buffer.alloc(0)
