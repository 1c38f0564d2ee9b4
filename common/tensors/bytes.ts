import { isUtf8 } from 'node:buffer'
import { elementEnd, type RawTensor } from './tensor.ts'

/**
 * The elements of a raw BYTES tensor, as views of its memory.
 * @throws ServeError INVALID_TENSOR when the last one is incomplete
 */
export function splitElements({ name, data }: Pick<RawTensor, 'name' | 'data'>): Buffer[] {
  const bytes = asBuffer(data)
  const elements: Buffer[] = []
  for (let at = 0; at < bytes.length;) {
    const end = elementEnd(name, bytes, at)
    elements.push(bytes.subarray(at + 4, end))
    at = end
  }
  return elements
}

/**
 * The elements of a raw BYTES tensor as texts, without an object of their bytes for each. Undefined if one is
 * not UTF-8. @throws ServeError INVALID_TENSOR when the last one is incomplete
 */
export function textElements({ name, data }: Pick<RawTensor, 'name' | 'data'>): string[] | undefined {
  const bytes = asBuffer(data)
  const texts: string[] = []
  for (let at = 0; at < bytes.length;) {
    const end = elementEnd(name, bytes, at)
    const text = end === at + 4 ? '' : bytes.toString('utf8', at + 4, end)
    // What stands for bytes that are none may also be a character of the text.
    if (text.includes(REPLACEMENT) && !isUtf8(bytes.subarray(at + 4, end))) return undefined
    texts.push(text)
    at = end
  }
  return texts
}

const REPLACEMENT = '\ufffd'

/** Raw BYTES of these elements. Strings become UTF-8. */
export function joinElements(elements: readonly (string | Uint8Array)[]): Buffer {
  let size = 0
  for (const element of elements) size += 4 + byteLength(element)
  const joined = Buffer.allocUnsafe(size)
  let at = 0
  for (const element of elements) {
    const start = at + 4
    if (typeof element === 'string') {
      at = start + joined.write(element, start)
    } else {
      joined.set(element, start)
      at = start + element.byteLength
    }
    joined.writeUInt32LE(at - start, start - 4)
  }
  return joined
}

function byteLength(element: string | Uint8Array): number {
  return typeof element === 'string' ? Buffer.byteLength(element) : element.byteLength
}

export function asBuffer(data: Uint8Array): Buffer {
  return Buffer.isBuffer(data) ? data : Buffer.from(data.buffer, data.byteOffset, data.byteLength)
}
