import protobuf from 'protobufjs/minimal.js'

/** Keys of PredictionResponse { 1: prediction, 2: sequence_id, 3: status }, all length-delimited. */
const PREDICTION = 0x0a
const SEQUENCE_ID = 0x12
const STATUS = 0x1a
/** Keys of google.rpc.Status { 1: code, 2: message, 3: details }. */
const STATUS_CODE = 0x08
const STATUS_MESSAGE = 0x12
const STATUS_DETAILS = 0x1a
/** Keys of google.protobuf.Any { 1: type_url, 2: value } and google.rpc.ErrorInfo { 1: reason }. */
const ANY_TYPE_URL = 0x0a
const ANY_VALUE = 0x12
const ERROR_REASON = 0x0a

const ERROR_INFO = 'type.googleapis.com/google.rpc.ErrorInfo'

/** The error of one request of a StreamPredictions2 call. */
export interface MessageStatus {
  /** A gRPC status code. */
  code: number
  message: string
  /** TorchServe's class name. */
  reason: string
}

/**
 * Encodes `PredictionResponse { prediction }`. By hand, because it is done for every item of every stream;
 * the result shares no memory with `prediction`, so an item that waits for a slow reader does not pin the
 * frame it came in.
 */
export function encodePrediction(prediction: Uint8Array): Buffer {
  const length = prediction.length
  if (length === 0) return EMPTY
  const message = Buffer.allocUnsafe(1 + varintBytes(length) + length)
  message[0] = PREDICTION
  let offset = 1
  let rest = length
  for (; rest > 0x7f; rest >>>= 7) message[offset++] = (rest & 0x7f) | 0x80
  message[offset++] = rest
  message.set(prediction, offset)
  return message
}

/** Proto3 leaves an empty value out: the message has no bytes. */
const EMPTY = Buffer.alloc(0)

function varintBytes(value: number): number {
  let bytes = 1
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) bytes++
  return bytes
}

/** Encodes `PredictionResponse { prediction, sequence_id }`; shares no memory with `prediction`. */
export function encodeSequencePrediction(prediction: Uint8Array, sequenceId: string): Buffer {
  return message([PREDICTION, prediction], [SEQUENCE_ID, Buffer.from(sequenceId)])
}

/** Encodes `PredictionResponse { sequence_id, status }`. */
export function encodeSequenceError(
  { code, message: text, reason }: MessageStatus,
  sequenceId: string,
): Buffer {
  const info = message([ERROR_REASON, Buffer.from(reason)])
  const details = message([ANY_TYPE_URL, Buffer.from(ERROR_INFO)], [ANY_VALUE, info])
  const status = message([STATUS_MESSAGE, Buffer.from(text)], [STATUS_DETAILS, details])
  return message(
    [SEQUENCE_ID, Buffer.from(sequenceId)],
    [STATUS, Buffer.concat([Buffer.of(STATUS_CODE, code), status])],
  )
}

/** A message of these fields. Proto3 leaves empty values out. */
function message(...fields: [key: number, value: Uint8Array][]): Buffer {
  const writer = protobuf.Writer.create()
  for (const [key, value] of fields) if (value.length > 0) writer.uint32(key).bytes(value)
  return writer.finish() as Buffer
}
