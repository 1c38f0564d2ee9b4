/** Field 1, length-delimited: `bytes prediction = 1`. */
const PREDICTION_TAG = 0x0a

/**
 * Encodes `PredictionResponse { prediction }`. By hand, because it is done for every item of every stream; the result
 * shares no memory with `prediction`, so an item that waits for a slow reader does not pin the frame it came in.
 */
export function encodePrediction(prediction: Uint8Array): Buffer {
  const length = prediction.byteLength
  if (length === 0) return EMPTY
  const message = Buffer.allocUnsafe(1 + varintBytes(length) + length)
  message[0] = PREDICTION_TAG
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
