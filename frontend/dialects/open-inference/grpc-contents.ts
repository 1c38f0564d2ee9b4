import protobuf from 'protobufjs/minimal.js'
import { ServeError } from '../../../common/errors.ts'
import { joinElements } from '../../../common/tensors/bytes.ts'
import { type DatatypeSpec, NUMERIC } from '../../../common/tensors/datatypes.ts'
import { elementEnd, invalid, type RawTensor } from '../../../common/tensors/tensor.ts'
import { arrayOf } from '../../../common/tensors/typed.ts'
import type { TensorMessage } from './grpc-messages.ts'

/** The elements of a tensor: raw, and how many they are. */
export interface RawContents {
  readonly count: number
  readonly data: Uint8Array
}

const NO_CONTENTS = Buffer.alloc(0)

/** How protobuf writes an element. */
type Type = 'bool' | 'int32' | 'int64' | 'uint32' | 'uint64' | 'fixed' | 'bytes'
interface Wide {
  readonly low: number
  readonly high: number
}
type Element = number | boolean | Uint8Array | Wide

/** The field of InferTensorContents that takes a datatype; the others have only the raw form. */
export const FIELDS: ReadonlyMap<string, { readonly field: number; readonly type: Type }> = new Map([
  ['BOOL', { field: 1, type: 'bool' }],
  ['INT8', { field: 2, type: 'int32' }],
  ['INT16', { field: 2, type: 'int32' }],
  ['INT32', { field: 2, type: 'int32' }],
  ['INT64', { field: 3, type: 'int64' }],
  ['UINT8', { field: 4, type: 'uint32' }],
  ['UINT16', { field: 4, type: 'uint32' }],
  ['UINT32', { field: 4, type: 'uint32' }],
  ['UINT64', { field: 5, type: 'uint64' }],
  ['FP32', { field: 6, type: 'fixed' }],
  ['FP64', { field: 7, type: 'fixed' }],
  ['BYTES', { field: 8, type: 'bytes' }],
])

/**
 * Reads the bytes of an InferTensorContents. Undefined for a datatype that has no typed contents.
 * @param contents absent: there are none
 * @param maxBytes of the raw elements
 * @throws ServeError INVALID_TENSOR, PAYLOAD_TOO_LARGE
 */
export function rawContents(
  { name = '', datatype = '', contents = NO_CONTENTS }: Pick<TensorMessage, 'name' | 'datatype' | 'contents'>,
  maxBytes: number,
): RawContents | undefined {
  const form = FIELDS.get(datatype)
  if (form === undefined) return undefined
  const spec = NUMERIC.get(datatype)
  const width = spec?.array.BYTES_PER_ELEMENT
  let bytes = 0
  const elements: Element[] = []
  const take = (element: Element): void => {
    bytes += element instanceof Uint8Array ? element.byteLength + (width === undefined ? 4 : 0) : width!
    if (bytes > maxBytes)
      throw new ServeError('PAYLOAD_TOO_LARGE', 'The request is larger than max_request_size')
    elements.push(element)
  }
  try {
    readField(contents, form, take)
  } catch (thrown) {
    throw thrown instanceof ServeError ? thrown : malformed(name)
  }
  if (spec === undefined) return { count: elements.length, data: joinElements(elements as Uint8Array[]) }
  if (spec.kind !== 'float') return { count: elements.length, data: rawNumbers(name, elements, spec) }
  if (bytes % width! !== 0) throw malformed(name)
  return { count: bytes / width!, data: Buffer.concat(elements as Uint8Array[]) }
}

const LENGTH_DELIMITED = 2

/** Numbers may be packed. Floats stand there as in a raw tensor. @throws Error for what is no message */
function readField(
  contents: Buffer,
  { field, type }: { readonly field: number; readonly type: Type },
  take: (element: Element) => void,
): void {
  const reader = protobuf.Reader.create(contents)
  while (reader.pos < reader.len) {
    const tag = reader.uint32()
    const wire = tag & 7
    const start = reader.pos
    if (tag >>> 3 !== field) reader.skipType(wire)
    else if (type === 'bytes' || (type === 'fixed' && wire === LENGTH_DELIMITED)) take(reader.bytes())
    else if (type === 'fixed') {
      reader.skipType(wire)
      take(contents.subarray(start, reader.pos))
    } else if (wire !== LENGTH_DELIMITED) take(reader[type]())
    else {
      const end = reader.uint32() + reader.pos
      while (reader.pos < end) take(reader[type]())
      if (reader.pos > end) throw new RangeError('The last number is truncated')
    }
  }
  if (reader.pos > reader.len) throw new RangeError('The last number is truncated')
}

function rawNumbers(
  name: string,
  elements: readonly Element[],
  { kind, array, min, max }: DatatypeSpec,
): Uint8Array {
  const raw = new array(elements.length)
  if (kind === 'wide integer') {
    const words = new Uint32Array(raw.buffer as ArrayBuffer)
    ;(elements as Wide[]).forEach(({ low, high }, i) => {
      words[2 * i] = low
      words[2 * i + 1] = high
    })
    return new Uint8Array(raw.buffer)
  }
  for (let i = 0; i < elements.length; i += 1) {
    const value = Number(elements[i])
    if (value < min || value > max)
      throw invalid(name, `data must contain only whole numbers from ${min} to ${max}`)
    raw[i] = value
  }
  return new Uint8Array(raw.buffer)
}

function malformed(name: string): ServeError {
  return invalid(name, 'its contents are not valid')
}

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
