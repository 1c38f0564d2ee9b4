import { LENGTH_BYTES } from './frame.ts'
import type { ResponseMessage, StreamNext } from './messages.ts'
import type { Writer } from './wire-pieces.ts'
import { fixedText, Reader, textRoom } from './wire-pieces.ts'

/**
 * Responses, written and read by hand: nearly all frames are of this kind, and a general codec spends most of its time on
 * their keys. The bytes are the msgpack map that any codec could have made, in this order of keys: type, id,
 * ts_stream_next?, contentType?, status?, body.
 */
const TYPE = Buffer.concat([fixedText('type'), fixedText('response')])
const ID = fixedText('id')
const STREAM_NEXT = fixedText('ts_stream_next')
const TRUE = fixedText('true')
const FALSE = fixedText('false')
const CONTENT_TYPE = fixedText('contentType')
const STATUS = fixedText('status')
const BODY = fixedText('body')

const FIXED_BYTES = LENGTH_BYTES + 1 + TYPE.length + ID.length + STREAM_NEXT.length + CONTENT_TYPE.length
const MAX_HEAD_BYTES = FIXED_BYTES + STATUS.length + BODY.length + FALSE.length + 3 * 5

const MAP_OF_3 = 0x83

/** An upper bound of the frame's size, length included; undefined: the message needs the general codec. */
export function responseRoom(message: ResponseMessage): number | undefined {
  if (message.headers !== undefined || message.reason !== undefined) return undefined
  const { contentType } = message
  return MAX_HEAD_BYTES + message.body.byteLength + (contentType === undefined ? 0 : textRoom(contentType))
}

/** Writes the map (without the frame's length). */
export function writeResponse(writer: Writer, message: ResponseMessage): void {
  const { ts_stream_next: next, contentType, status } = message
  const optional =
    Number(next !== undefined) + Number(contentType !== undefined) + Number(status !== undefined)
  writer.byte(MAP_OF_3 + optional)
  writer.constant(TYPE)
  writer.constant(ID)
  writer.uint32(message.id)
  if (next !== undefined) {
    writer.constant(STREAM_NEXT)
    writer.constant(next === 'true' ? TRUE : FALSE)
  }
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

/** Reads such a map; undefined: the frame is something else. */
export function readResponse(chunk: Buffer, from: number, to: number): ResponseMessage | undefined {
  const reader = new Reader(chunk, from, to)
  const fields = reader.byte() - MAP_OF_3
  if (fields < 0 || fields > 3) return undefined
  reader.constant(TYPE)
  if (!reader.ok) return undefined
  reader.constant(ID)
  const id = reader.uint32()
  const next = reader.next === STREAM_NEXT[0] ? readNext(reader) : undefined
  const contentType = reader.next === CONTENT_TYPE[0] ? readContentType(reader) : undefined
  const status = reader.next === STATUS[0] ? readStatus(reader) : undefined
  reader.constant(BODY)
  const body = reader.bytes()
  const optional =
    Number(next !== undefined) + Number(contentType !== undefined) + Number(status !== undefined)
  if (!reader.ok || reader.at !== to || optional !== fields) return undefined
  const message: ResponseMessage = { type: 'response', id, body }
  if (next !== undefined) message.ts_stream_next = next
  if (contentType !== undefined) message.contentType = contentType
  if (status !== undefined) message.status = status
  return message
}

function readNext(reader: Reader): StreamNext {
  reader.constant(STREAM_NEXT)
  const isTrue = reader.next === TRUE[0]
  reader.constant(isTrue ? TRUE : FALSE)
  return isTrue ? 'true' : 'false'
}

function readContentType(reader: Reader): string {
  reader.constant(CONTENT_TYPE)
  return reader.text()
}

function readStatus(reader: Reader): number {
  reader.constant(STATUS)
  return reader.uint32()
}
