import { NUMERIC } from '../../../common/tensors/datatypes.ts'
import { elementEnd, type RawTensor } from '../../../common/tensors/tensor.ts'
import { arrayOf } from '../../../common/tensors/typed.ts'
import { FIELDS } from './grpc-contents.ts'

const LENGTH = 2

/**
 * The bytes of an InferTensorContents, without an object for each element: a tensor may have millions.
 * Undefined for a datatype that has no typed contents.
 */
export function typedContents(tensor: RawTensor): Buffer | undefined {
  const form = FIELDS.get(tensor.datatype)
  if (form === undefined) return undefined
  const tag = form.field * 8 + LENGTH
  if (tensor.data.byteLength === 0) return Buffer.alloc(0)
  switch (form.type) {
    case 'bytes':
      return texts(tensor, tag)
    case 'fixed':
      return packed(tag, tensor.data)
    default:
      return varints(tensor, tag)
  }
}

function packed(tag: number, bytes: Uint8Array): Buffer {
  const head = Buffer.allocUnsafe(1 + MAX_VARINT_BYTES)
  head[0] = tag
  return Buffer.concat([head.subarray(0, writeVarint(head, 1, bytes.byteLength)), bytes])
}

/** The elements stand behind their lengths in both forms. */
function texts({ name, data }: RawTensor, tag: number): Buffer {
  const contents = Buffer.allocUnsafe(maxTextBytes(data.byteLength))
  let to = 0
  for (let at = 0; at < data.length;) {
    const end = elementEnd(name, data, at)
    contents[to] = tag
    to = writeVarint(contents, to + 1, end - at - 4)
    for (at += 4; at < end; at += 1, to += 1) contents[to] = data[at]!
  }
  return contents.subarray(0, to)
}

/** A tag and a length take more than the four bytes of an element's length where it has 2 MiB or more. */
function maxTextBytes(bytes: number): number {
  return bytes + 2 * Math.ceil(bytes / 2 ** 21)
}

/** Integers as two halves of 64 bits each: a bigint for each would take most of the time. */
function varints(tensor: RawTensor, tag: number): Buffer {
  const { kind } = NUMERIC.get(tensor.datatype)!
  const array = arrayOf(tensor)
  const isWide = kind === 'wide integer'
  const words = isWide ? new Uint32Array(array.buffer, array.byteOffset, 2 * array.length) : undefined
  const narrow = array as Int32Array
  const bytes = Buffer.allocUnsafe(array.length * (kind === 'boolean' ? 1 : MAX_VARINT_BYTES))
  let at = 0
  for (let i = 0; i < array.length; i += 1) {
    if (words !== undefined) at = writeVarint(bytes, at, words[2 * i]!, words[2 * i + 1])
    else if (kind === 'boolean') bytes[at++] = narrow[i] === 0 ? 0 : 1
    else at = writeVarint(bytes, at, narrow[i]! >>> 0, narrow[i]! < 0 ? 0xffffffff : 0)
  }
  return packed(tag, bytes.subarray(0, at))
}

const MAX_VARINT_BYTES = 10

/** Returns the position after it. */
function writeVarint(into: Buffer, at: number, low: number, high = 0): number {
  while (high > 0 || low > 0x7f) {
    into[at++] = (low & 0x7f) | 0x80
    low = ((low >>> 7) | (high << 25)) >>> 0
    high >>>= 7
  }
  into[at++] = low
  return at
}
