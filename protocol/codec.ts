import { Packr } from 'msgpackr'
import { ServeError, type WireError } from '../common/errors.ts'
import { AFTER, FRAME, flagsAt, HEAD, HEADER_BYTES, idAt, MORE, NEXT, STREAM, typeAt } from './frame.ts'
import {
  CANCEL_REASONS,
  type FromWorker,
  type PredictMessage,
  type PredictRequest,
  type ResponseMessage,
  type ToWorker,
} from './messages.ts'
import type { Outbox } from './outbox.ts'
import { MAPS, PREDICT, RESPONSE_HEAD, type Shape } from './shapes.ts'

/** Plain maps without msgpackr's shared record structures, so that every frame can be decoded alone. */
const packr = new Packr({ useRecords: false })

const NO_BYTES = new Uint8Array(0)

type MapMessage = Extract<ToWorker | FromWorker, { type: keyof typeof MAPS }>

/** Messages whose payload is one map, by direction and the type of their frame. */
const FROM_WORKER = mapsOf('ready', 'loaded', 'failure', 'withdrawn', 'log', 'metric')
const TO_WORKER = mapsOf('load', 'withdraw', 'sequenceEnd')

function mapsOf<T extends MapMessage['type']>(...types: T[]): ReadonlyMap<number, T> {
  return new Map(types.map((type) => [FRAME[type], type]))
}

/** Adds the frame of a message. */
export function encode(outbox: Outbox, message: ToWorker | FromWorker): void {
  const { type } = message
  switch (type) {
    case 'response':
      encodeResponse(outbox, message)
      return
    case 'predict':
      encodePredict(outbox, message)
      return
    case 'credit':
      outbox.add(FRAME.credit, 0, message.id, uint32(message.bytes))
      return
    case 'taken':
      outbox.add(FRAME.credit, 0, message.id, uint32(message.inputs))
      return
    case 'input':
      outbox.add(FRAME.input, message.data === undefined ? 0 : MORE, message.id, message.data)
      return
    case 'cancel':
      outbox.add(FRAME.cancel, 0, message.id, Uint8Array.of(CANCEL_REASONS.indexOf(message.reason)))
      return
    case 'finished':
    case 'alive':
      outbox.add(FRAME[type], 0, message.id)
      return
    case 'ping':
    case 'pong':
      outbox.add(FRAME[type], 0, message.nonce)
      return
    case 'unload':
      outbox.add(FRAME.unload, 0, 0)
      return
    default:
      encodeMap(outbox, message)
  }
}

/** Decodes a frame (bytes from..to of a chunk) that the frontend received. @throws ServeError PROTOCOL */
export function decodeFromWorker(chunk: Buffer, from = 0, to = chunk.length): FromWorker {
  const flags = flagsAt(chunk, from)
  const id = idAt(chunk, from)
  const type = typeAt(chunk, from)
  if (type === FRAME.response) return decodeResponse(chunk, from, to)
  if (flags !== 0) throw unknown('flags', flags, type)
  switch (type) {
    case FRAME.credit:
      return { type: 'taken', id, inputs: onlyUint32(chunk, from, to) }
    case FRAME.finished:
      return { type: 'finished', id }
    case FRAME.alive:
      return { type: 'alive', id }
    case FRAME.pong:
      return { type: 'pong', nonce: id }
    default:
      return decodeMap(FROM_WORKER, chunk, from, to)
  }
}

/** Decodes a frame (bytes from..to of a chunk) that a worker received. @throws ServeError PROTOCOL */
export function decodeToWorker(chunk: Buffer, from = 0, to = chunk.length): ToWorker {
  const flags = flagsAt(chunk, from)
  const id = idAt(chunk, from)
  const type = typeAt(chunk, from)
  const known = type === FRAME.predict ? AFTER : type === FRAME.input ? MORE : 0
  if ((flags & ~known) !== 0) throw unknown('flags', flags, type)
  switch (type) {
    case FRAME.predict:
      return decodePredict(chunk, from, to, (flags & AFTER) !== 0)
    case FRAME.credit:
      return { type: 'credit', id, bytes: onlyUint32(chunk, from, to) }
    case FRAME.input:
      return flags === 0
        ? { type: 'input', id }
        : { type: 'input', id, data: chunk.subarray(from + HEADER_BYTES, to) }
    case FRAME.cancel: {
      const reason = to === from + HEADER_BYTES + 1 ? CANCEL_REASONS[chunk[to - 1]!] : undefined
      if (reason === undefined) throw malformed('cancel')
      return { type: 'cancel', id, reason }
    }
    case FRAME.ping:
      return { type: 'ping', nonce: id }
    case FRAME.unload:
      return { type: 'unload' }
    default:
      return decodeMap(TO_WORKER, chunk, from, to)
  }
}

function encodeResponse(outbox: Outbox, message: ResponseMessage): void {
  const { id, body, ts_stream_next: next, status, reason, contentType, headers } = message
  const flags = next === undefined ? 0 : next === 'true' ? STREAM | NEXT : STREAM
  if (status === undefined && reason === undefined && contentType === undefined && headers === undefined) {
    outbox.add(FRAME.response, flags, id, body)
    return
  }
  const head = packr.pack(defined({ status, reason, contentType, headers }))
  outbox.add(FRAME.response, flags | HEAD, id, uint32(head.length), [head, body])
}

function decodeResponse(chunk: Buffer, from: number, to: number): ResponseMessage {
  const flags = flagsAt(chunk, from)
  if (flags > (STREAM | NEXT | HEAD) || (flags & (STREAM | NEXT)) === NEXT)
    throw unknown('flags', flags, FRAME.response)
  let at = from + HEADER_BYTES
  let head: Partial<ResponseMessage> | undefined
  if ((flags & HEAD) !== 0) {
    const end = at + 4 + (at + 4 > to ? 0 : chunk.readUInt32BE(at))
    head = unpack('response', RESPONSE_HEAD, chunk, at + 4, end, to) as Partial<ResponseMessage>
    at = end
  }
  const message: ResponseMessage = { type: 'response', id: idAt(chunk, from), body: chunk.subarray(at, to) }
  if ((flags & STREAM) !== 0) message.ts_stream_next = (flags & NEXT) !== 0 ? 'true' : 'false'
  if (head?.status !== undefined) message.status = head.status
  if (head?.reason !== undefined) message.reason = head.reason
  if (head?.contentType !== undefined) message.contentType = head.contentType
  if (head?.headers !== undefined) message.headers = head.headers
  return message
}

/** A request in the map of a predict frame, which names each part with its size. */
interface Head extends Omit<PredictRequest, 'parts'> {
  parts: { name: string; contentType?: string; size: number }[]
}

/** The bytes of all parts follow the map. */
function encodePredict(outbox: Outbox, { requests, after }: PredictMessage): void {
  const pieces: Uint8Array[] = [NO_BYTES]
  const heads: Record<string, unknown>[] = []
  for (const request of requests) {
    const parts: Head['parts'] = []
    for (const { name, contentType, data } of request.parts) {
      pieces.push(data)
      const size = data.length
      parts.push(contentType === undefined ? { name, size } : { name, contentType, size })
    }
    heads.push(defined({ ...request, parts }))
  }
  const map = (pieces[0] = packr.pack({ requests: heads }))
  outbox.add(FRAME.predict, after === true ? AFTER : 0, 0, uint32(map.length), pieces)
}

function decodePredict(chunk: Buffer, from: number, to: number, after: boolean): PredictMessage {
  const start = from + HEADER_BYTES + 4
  let at = start > to ? to + 1 : start + chunk.readUInt32BE(start - 4)
  const map = unpack('predict', PREDICT, chunk, start, at, to) as { requests: Head[] }
  const requests = map.requests.map((head): PredictRequest => {
    const parts = head.parts.map(({ name, contentType, size }) => {
      const data = chunk.subarray(at, (at += size))
      return contentType === undefined ? { name, data } : { name, contentType, data }
    })
    return { ...head, parts }
  })
  if (at !== to) throw malformed('predict')
  return after ? { type: 'predict', requests, after } : { type: 'predict', requests }
}

function encodeMap(outbox: Outbox, { type, ...fields }: MapMessage): void {
  const { id = 0, error, ...rest } = fields as { id?: number; error?: WireError }
  const map = error === undefined ? rest : { ...rest, error: defined({ ...error }) }
  outbox.add(FRAME[type], 0, id, packr.pack(defined(map)))
}

function decodeMap<T extends MapMessage['type']>(
  known: ReadonlyMap<number, T>,
  chunk: Buffer,
  from: number,
  to: number,
): Extract<MapMessage, { type: T }> {
  const type = known.get(typeAt(chunk, from))
  if (type === undefined) throw unknown('type', typeAt(chunk, from))
  const fields = unpack(type, MAPS[type], chunk, from + HEADER_BYTES, to, to) as Record<string, unknown>
  fields['type'] = type
  if (type === 'failure') fields['id'] = idAt(chunk, from)
  return fields as unknown as Extract<MapMessage, { type: T }>
}

/** The map in bytes from..end, which must not be beyond `to`. */
function unpack(type: string, shape: Shape, chunk: Buffer, from: number, end: number, to: number): unknown {
  if (from > end || end > to) throw malformed(type)
  let value: unknown
  try {
    value = packr.unpack(chunk.subarray(from, end))
  } catch (cause) {
    throw new ServeError('PROTOCOL', `A ${type} frame is not valid msgpack`, { cause })
  }
  if (!shape.fits(value)) throw malformed(type)
  return value
}

/** The fields without those that are undefined, which other readers of msgpack do not know. */
function defined(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(isDefined))
}

function isDefined([, value]: [string, unknown]): boolean {
  return value !== undefined
}

function uint32(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4)
  bytes.writeUInt32BE(value)
  return bytes
}

function onlyUint32(chunk: Buffer, from: number, to: number): number {
  if (to !== from + HEADER_BYTES + 4) throw malformed('credit')
  return chunk.readUInt32BE(to - 4)
}

function malformed(type: string): ServeError {
  return new ServeError('PROTOCOL', `Malformed message: ${type}`)
}

function unknown(what: string, value: number, type?: number): ServeError {
  return new ServeError(
    'PROTOCOL',
    `A frame has the unknown ${what} ${value}${type === undefined ? '' : ` (type ${type})`}`,
  )
}
