import { LENGTH_BYTES } from './frame.ts'
import type { InputPart, PredictMessage, PredictRequest } from './messages.ts'
import type { Writer } from './wire-pieces.ts'
import { fixedText, Reader, textRoom } from './wire-pieces.ts'

/**
 * Predict messages, written and read by hand for the same reason as responses (response-frame.ts). Order of keys: type, action,
 * requests; in a request id, requestId, headers, parts, window, deadline?; in a part name, contentType?, data.
 */
const TYPE = Buffer.concat([fixedText('type'), fixedText('predict'), fixedText('action')])
const PREDICT = fixedText('predict')
const DESCRIBE = fixedText('describe')
const REQUESTS = fixedText('requests')
const ID = fixedText('id')
const REQUEST_ID = fixedText('requestId')
const HEADERS = fixedText('headers')
const PARTS = fixedText('parts')
const WINDOW = fixedText('window')
const DEADLINE = fixedText('deadline')
const NAME = fixedText('name')
const BODY = fixedText('body')
const CONTENT_TYPE = fixedText('contentType')
const DATA = fixedText('data')

/** What keys, markers and numbers take at most. */
const MESSAGE_BYTES = 64 + LENGTH_BYTES
const REQUEST_BYTES = 96
const PART_BYTES = 48

const MAP = 0x80
const MAX_UINT32 = 0xffffffff

/** An upper bound of the frame's size, length included; undefined: the message needs the general codec. */
export function predictRoom(message: PredictMessage): number | undefined {
  let room = MESSAGE_BYTES
  for (const request of message.requests) {
    if (request.window > MAX_UINT32) return undefined
    room += REQUEST_BYTES + textRoom(request.requestId) + textRoom(request.headers)
    for (const part of request.parts) {
      room += PART_BYTES + textRoom(part.name) + textRoom(part.contentType ?? '') + part.data.byteLength
    }
  }
  return room
}

/** Writes the map (without the frame's length). */
export function writePredict(writer: Writer, message: PredictMessage): void {
  writer.byte(MAP + 3)
  writer.constant(TYPE)
  writer.constant(message.action === 'predict' ? PREDICT : DESCRIBE)
  writer.constant(REQUESTS)
  writer.arrayHead(message.requests.length)
  for (const request of message.requests) writeRequest(writer, request)
}

function writeRequest(
  writer: Writer,
  { id, requestId, headers, parts, window, deadline }: PredictRequest,
): void {
  writer.byte(MAP + (deadline === undefined ? 5 : 6))
  writer.constant(ID)
  writer.uint32(id)
  writer.constant(REQUEST_ID)
  writer.text(requestId)
  writer.constant(HEADERS)
  writer.text(headers)
  writer.constant(PARTS)
  writer.arrayHead(parts.length)
  for (const part of parts) writePart(writer, part)
  writer.constant(WINDOW)
  writer.uint32(window)
  if (deadline === undefined) return
  writer.constant(DEADLINE)
  writer.double(deadline)
}

function writePart(writer: Writer, { name, contentType, data }: InputPart): void {
  writer.byte(MAP + (contentType === undefined ? 2 : 3))
  writer.constant(NAME)
  if (name === 'body') writer.constant(BODY)
  else writer.text(name)
  if (contentType !== undefined) {
    writer.constant(CONTENT_TYPE)
    writer.text(contentType)
  }
  writer.constant(DATA)
  writer.bytes(data)
}

/** Reads such a map; undefined: the frame is something else. */
export function readPredict(chunk: Buffer, from: number, to: number): PredictMessage | undefined {
  const reader = new Reader(chunk, from, to)
  if (reader.byte() !== MAP + 3) return undefined
  reader.constant(TYPE)
  if (!reader.ok) return undefined
  const action = reader.tryConstant(PREDICT) ? 'predict' : 'describe'
  if (action === 'describe') reader.constant(DESCRIBE)
  reader.constant(REQUESTS)
  const count = reader.arrayHead()
  const requests: PredictRequest[] = []
  for (let i = 0; i < count && reader.ok; i += 1) requests.push(readRequest(reader))
  return reader.ok && reader.at === to ? { type: 'predict', action, requests } : undefined
}

function readRequest(reader: Reader): PredictRequest {
  const fields = reader.byte() - MAP
  if (fields !== 5 && fields !== 6) reader.ok = false
  reader.constant(ID)
  const id = reader.uint32()
  reader.constant(REQUEST_ID)
  const requestId = reader.text()
  reader.constant(HEADERS)
  const headers = reader.text()
  reader.constant(PARTS)
  const count = reader.arrayHead()
  const parts: InputPart[] = []
  for (let i = 0; i < count && reader.ok; i += 1) parts.push(readPart(reader))
  reader.constant(WINDOW)
  const window = reader.uint32()
  if (fields === 5) return { id, requestId, headers, parts, window }
  reader.constant(DEADLINE)
  return { id, requestId, headers, parts, window, deadline: reader.finite() }
}

function readPart(reader: Reader): InputPart {
  const fields = reader.byte() - MAP
  if (fields !== 2 && fields !== 3) reader.ok = false
  reader.constant(NAME)
  const name = reader.tryConstant(BODY) ? 'body' : reader.text()
  if (fields === 2) {
    reader.constant(DATA)
    return { name, data: reader.bytes() }
  }
  reader.constant(CONTENT_TYPE)
  const contentType = reader.text()
  reader.constant(DATA)
  return { name, contentType, data: reader.bytes() }
}
