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
  switch (form.encoding) {
    case 'bytes':
      return texts(tensor, tag)
    case 'fixed':
      return packed(tag, tensor.data.byteLength, (into, at) => into.set(tensor.data, at))
    case 'varint':
      return varints(tensor, tag)
  }
}

function packed(tag: number, bytes: number, write: (into: Buffer, at: number) => void): Buffer {
  const start = 1 + varintBytes(bytes)
  const contents = Buffer.allocUnsafe(start + bytes)
  contents[0] = tag
  writeVarint(contents, 1, bytes)
  write(contents, start)
  return contents
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

function varints(tensor: RawTensor, tag: number): Buffer {
  const { kind } = NUMERIC.get(tensor.datatype)!
  if (kind === 'wide integer') return wide(tensor, tag)
  const array = arrayOf(tensor) as Int32Array
  const isFlag = kind === 'boolean'
  let size = 0
  for (let i = 0; i < array.length; i += 1) {
    const value = array[i]!
    size += isFlag ? 1 : value < 0 ? NEGATIVE_BYTES : varintBytes(value)
  }
  return packed(tag, size, (into, start) => {
    let at = start
    for (let i = 0; i < array.length; i += 1) {
      const value = array[i]!
      if (isFlag) into[at++] = value === 0 ? 0 : 1
      else if (value < 0) at = writeHalves(into, at, value >>> 0, 0xffffffff)
      else at = writeVarint(into, at, value)
    }
  })
}

/** In two halves, because a bigint for each would take most of the time. */
function wide(tensor: RawTensor, tag: number): Buffer {
  const { buffer, byteOffset, length } = arrayOf(tensor)
  const words = new Uint32Array(buffer, byteOffset, 2 * length)
  let size = 0
  for (let i = 0; i < words.length; i += 2) size += halvesBytes(words[i]!, words[i + 1]!)
  return packed(tag, size, (into, start) => {
    let at = start
    for (let i = 0; i < words.length; i += 2) at = writeHalves(into, at, words[i]!, words[i + 1]!)
  })
}

/** What a negative integer takes, whatever its size. */
const NEGATIVE_BYTES = 10

/** Of an integer from 0 to 2^32 - 1. */
function varintBytes(value: number): number {
  let bytes = 1
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) bytes += 1
  return bytes
}

function halvesBytes(low: number, high: number): number {
  if (high === 0) return varintBytes(low)
  // 28 bits stand in the first four bytes.
  return 4 + (high < 8 ? 1 : 1 + varintBytes(high >>> 3))
}

/** Returns the position after it. */
function writeVarint(into: Buffer, at: number, value: number): number {
  let rest = value
  for (; rest > 0x7f; rest >>>= 7) into[at++] = (rest & 0x7f) | 0x80
  into[at++] = rest
  return at
}

/** The same for 64 bits. */
function writeHalves(into: Buffer, at: number, low: number, high: number): number {
  if (high === 0) return writeVarint(into, at, low)
  let rest = low
  for (let i = 0; i < 4; i += 1, rest >>>= 7) into[at++] = (rest & 0x7f) | 0x80
  const middle = rest | ((high & 7) << 4)
  const last = high >>> 3
  if (last === 0) {
    into[at++] = middle
    return at
  }
  into[at++] = middle | 0x80
  return writeVarint(into, at, last)
}
