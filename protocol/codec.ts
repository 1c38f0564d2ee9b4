import { Packr, RESERVE_START_SPACE } from 'msgpackr'
import { ServeError } from '../common/errors.ts'
import { checkFrameBounds } from './frame-bounds.ts'
import { LENGTH_BYTES, writeLength } from './frame.ts'
import type { FromWorker, ToWorker } from './messages.ts'
import { readPredict } from './predict-frame.ts'
import { readResponse } from './response-frame.ts'
import { isFromWorker, isToWorker } from './validate.ts'

/** Plain maps without msgpackr's shared record structures, so that every frame can be decoded alone. */
const packr = new Packr({ useRecords: false })

/** Encodes a message as one frame, with its length. */
export function encode(message: ToWorker | FromWorker): Buffer {
  const frame = packr.pack(message, RESERVE_START_SPACE | LENGTH_BYTES)
  writeLength(frame)
  return frame
}

/** Decodes a frame (bytes from..to of a chunk) that the frontend received. @throws ServeError PROTOCOL */
export function decodeFromWorker(chunk: Buffer, from = 0, to = chunk.length): FromWorker {
  const response = readResponse(chunk, from, to)
  if (response !== undefined) return response
  const message = unpack(chunk, from, to)
  if (!isFromWorker(message)) throw refuse(message)
  return message
}

/** Decodes a frame (bytes from..to of a chunk) that a worker received. @throws ServeError PROTOCOL */
export function decodeToWorker(chunk: Buffer, from = 0, to = chunk.length): ToWorker {
  const predict = readPredict(chunk, from, to)
  if (predict !== undefined) return predict
  const message = unpack(chunk, from, to)
  if (!isToWorker(message)) throw refuse(message)
  return message
}

function unpack(chunk: Buffer, from: number, to: number): unknown {
  checkFrameBounds(chunk, from, to)
  try {
    return packr.unpack(chunk.subarray(from, to)) as unknown
  } catch (cause) {
    throw new ServeError('PROTOCOL', 'A frame is not valid msgpack', { cause })
  }
}

function refuse(message: unknown): ServeError {
  const type =
    typeof message === 'object' && message !== null && 'type' in message && typeof message.type === 'string'
      ? message.type.slice(0, 40)
      : undefined
  return new ServeError(
    'PROTOCOL',
    type === undefined ? 'A frame is not a message' : `Malformed message: ${type}`,
  )
}
