import { elementEnd, type RawTensor } from './tensor.ts'

/**
 * The elements of a raw BYTES tensor, as views of its memory.
 * @throws ServeError INVALID_TENSOR when the last one is incomplete
 */
export function splitElements({ name, data }: Pick<RawTensor, 'name' | 'data'>): Buffer[] {
  const bytes = asBuffer(data)
  const elements: Buffer[] = []
  for (let at = 0; at < bytes.byteLength;) {
    const end = elementEnd(name, bytes, at)
    elements.push(bytes.subarray(at + 4, end))
    at = end
  }
  return elements
}

/** Raw BYTES of these elements. Strings become UTF-8. */
export function joinElements(elements: readonly (string | Uint8Array)[]): Buffer {
  const parts = elements.map((element) => (typeof element === 'string' ? Buffer.from(element) : element))
  const joined = Buffer.allocUnsafe(parts.reduce((bytes, part) => bytes + 4 + part.byteLength, 0))
  let at = 0
  for (const part of parts) {
    at = joined.writeUInt32LE(part.byteLength, at)
    joined.set(part, at)
    at += part.byteLength
  }
  return joined
}

export function asBuffer(data: Uint8Array): Buffer {
  return Buffer.isBuffer(data) ? data : Buffer.from(data.buffer, data.byteOffset, data.byteLength)
}
