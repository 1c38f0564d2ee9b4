import { HANDLER_METHODS, type HandlerMethod } from '../common/handler-methods.ts'
import { LENGTH_BYTES } from './frame.ts'
import type { InputPart, PredictMessage, PredictRequest } from './messages.ts'
import type { Writer } from './wire-pieces.ts'
import { constant, MARKER, Reader, textRoom } from './wire-pieces.ts'

/**
 * Predict messages, encoded and decoded by hand for speed, as in response-frame.ts. Order of keys: type,
 * after?, requests; in a request method, id, requestId, headers, parts, window, deadline?; in a part name,
 * contentType?, data.
 */
const { map, double, uint32, bin32, array32 } = MARKER
const PREDICT = constant(map + 2, 'type', 'predict', 'requests', array32)
const PREDICT_AFTER = constant(map + 3, 'type', 'predict', 'after', MARKER.true, 'requests', array32)
const REQUEST = constant(map + 6)
const REQUEST_WITH_DEADLINE = constant(map + 7)
/** The method, and the key of the id. `handle` comes first because it is the most frequent. */
const METHODS = new Map(
  HANDLER_METHODS.map((method) => [method, constant('method', method, 'id', uint32)] as const),
)
const HANDLE = METHODS.get('handle')!
const REQUEST_ID = constant('requestId')
const HEADERS = constant('headers')
const PARTS = constant('parts', array32)
const WINDOW = constant('window', uint32)
const DEADLINE = constant('deadline', double)
const PART = constant(map + 2, 'name')
const TYPED_PART = constant(map + 3, 'name')
/** The name of nearly all parts. */
const BODY = constant('body')
const CONTENT_TYPE = constant('contentType')
const DATA = constant('data', bin32)

/** Upper bound of keys, markers and numbers, in bytes. */
const MESSAGE_BYTES = 64 + LENGTH_BYTES
const REQUEST_BYTES = 128
const PART_BYTES = 48

const MAX_UINT32 = 0xffffffff

/** Upper bound of the frame size, including the length; undefined: the message needs the general codec. */
export function predictRoom(message: PredictMessage): number | undefined {
  let room = MESSAGE_BYTES
  for (const request of message.requests) {
    if (request.window > MAX_UINT32 || request.moreInputs === true) return undefined
    room += REQUEST_BYTES + textRoom(request.requestId) + textRoom(request.headers)
    for (const part of request.parts) {
      room += PART_BYTES + textRoom(part.name) + textRoom(part.contentType ?? '') + part.data.length
    }
  }
  return room
}

/** Writes the map, without the frame's length. */
export function writePredict(writer: Writer, message: PredictMessage): void {
  writer.constant(message.after === true ? PREDICT_AFTER : PREDICT)
  writer.uint32(message.requests.length)
  for (const request of message.requests) writeRequest(writer, request)
}

function writeRequest(
  writer: Writer,
  { method, id, requestId, headers, parts, window, deadline }: PredictRequest,
): void {
  writer.constant(deadline === undefined ? REQUEST : REQUEST_WITH_DEADLINE)
  writer.constant(method === 'handle' ? HANDLE : METHODS.get(method)!)
  writer.uint32(id)
  writer.constant(REQUEST_ID)
  writer.text(requestId)
  writer.constant(HEADERS)
  writer.text(headers)
  writer.constant(PARTS)
  writer.uint32(parts.length)
  for (const part of parts) writePart(writer, part)
  writer.constant(WINDOW)
  writer.uint32(window)
  if (deadline === undefined) return
  writer.constant(DEADLINE)
  writer.double(deadline)
}

function writePart(writer: Writer, { name, contentType, data }: InputPart): void {
  writer.constant(contentType === undefined ? PART : TYPED_PART)
  if (name === 'body') writer.constant(BODY)
  else writer.text(name)
  if (contentType !== undefined) {
    writer.constant(CONTENT_TYPE)
    writer.text(contentType)
  }
  writer.constant(DATA)
  writer.bytes(data)
}

/** Reads the map; undefined: the frame is of another kind. */
export function readPredict(chunk: Buffer, from: number, to: number): PredictMessage | undefined {
  const reader = new Reader(chunk, from, to)
  const after = !reader.tryConstant(PREDICT)
  if (after && !reader.tryConstant(PREDICT_AFTER)) return undefined
  const count = reader.count()
  const requests: PredictRequest[] = []
  for (let i = 0; i < count && reader.ok; i += 1) requests.push(readRequest(reader))
  if (!reader.ok || reader.at !== to) return undefined
  return after ? { type: 'predict', requests, after } : { type: 'predict', requests }
}

function readRequest(reader: Reader): PredictRequest {
  const limited = reader.tryConstant(REQUEST_WITH_DEADLINE)
  if (!limited) reader.constant(REQUEST)
  const method = reader.tryConstant(HANDLE) ? 'handle' : readMethod(reader)
  const id = reader.uint32()
  reader.constant(REQUEST_ID)
  const requestId = reader.text()
  reader.constant(HEADERS)
  const headers = reader.text()
  reader.constant(PARTS)
  const count = reader.count()
  const parts: InputPart[] = []
  for (let i = 0; i < count && reader.ok; i += 1) parts.push(readPart(reader))
  reader.constant(WINDOW)
  const window = reader.uint32()
  if (!limited) return { method, id, requestId, headers, parts, window }
  reader.constant(DEADLINE)
  return { method, id, requestId, headers, parts, window, deadline: reader.finite() }
}

function readMethod(reader: Reader): HandlerMethod {
  for (const [method, bytes] of METHODS) if (reader.tryConstant(bytes)) return method
  reader.ok = false
  return 'handle'
}

function readPart(reader: Reader): InputPart {
  const typed = reader.tryConstant(TYPED_PART)
  if (!typed) reader.constant(PART)
  const name = reader.tryConstant(BODY) ? 'body' : reader.text()
  if (!typed) {
    reader.constant(DATA)
    return { name, data: reader.bytes() }
  }
  reader.constant(CONTENT_TYPE)
  const contentType = reader.text()
  reader.constant(DATA)
  return { name, contentType, data: reader.bytes() }
}
