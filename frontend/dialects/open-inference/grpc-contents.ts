import protobuf from 'protobufjs/minimal.js'
import { ServeError } from '../../../common/errors.ts'
import { joinElements } from '../../../common/tensors/bytes.ts'
import { NUMERIC, type DatatypeSpec } from '../../../common/tensors/datatypes.ts'
import { invalid } from '../../../common/tensors/tensor.ts'
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
      if (reader.pos > end) throw new RangeError('The last number is cut')
    }
  }
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
