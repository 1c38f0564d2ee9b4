import { ServeError } from '../common/errors.ts'

const EMPTY = Buffer.alloc(0)

/**
 * Encodes one item of a response: bytes as they are, strings as UTF-8, undefined as nothing, everything else
 * as JSON.
 * @throws ServeError INVALID_OUTPUT when it cannot be encoded as JSON
 */
export function encodeOutput(item: unknown): Uint8Array {
  if (typeof item === 'string') return Buffer.from(item)
  if (item instanceof Uint8Array) return item
  if (item === undefined) return EMPTY
  if (ArrayBuffer.isView(item)) return Buffer.from(item.buffer, item.byteOffset, item.byteLength)
  if (item instanceof ArrayBuffer) return Buffer.from(item)
  return Buffer.from(toJson(item))
}

/** @throws ServeError INVALID_OUTPUT when the result is not a list with one item per request */
export function checkAnswer(answer: unknown, batchLength: number): unknown[] {
  if (!Array.isArray(answer)) throw new ServeError('INVALID_OUTPUT', 'Invalid model predict output')
  if (answer.length !== batchLength) {
    throw new ServeError('INVALID_OUTPUT', 'number of batch response mismatched', {
      detail: `The handler returned ${answer.length} items for ${batchLength} requests`,
    })
  }
  return answer as unknown[]
}

function toJson(item: unknown): string {
  let json: string | undefined
  let cause: unknown
  try {
    json = JSON.stringify(item, null, 2)
  } catch (thrown) {
    cause = thrown
  }
  if (json !== undefined) return json
  const detail = cause instanceof Error ? cause.message : `A ${typeof item} cannot be encoded as JSON`
  throw new ServeError('INVALID_OUTPUT', 'Unsupported model output data type.', { detail, cause })
}
