import protobuf from 'protobufjs/minimal.js'
import { ServeError } from '../../../common/errors.ts'
import { NUMERIC, type DatatypeSpec } from '../../../common/tensors/datatypes.ts'
import { invalid } from '../../../common/tensors/tensor.ts'
import type { TensorMessage } from './grpc-messages.ts'

/** The elements of a tensor: raw, and how many they are. */
export interface RawContents {
  readonly count: number
  readonly data: Uint8Array
}

const NO_CONTENTS: RawContents = { count: 0, data: new Uint8Array(0) }

type Encoding = 'varint' | 'fixed' | 'bytes'

/** The field of InferTensorContents that takes a datatype; the others have only the raw form. */
export const FIELDS: ReadonlyMap<string, { readonly field: number; readonly encoding: Encoding }> = new Map([
  ['BOOL', { field: 1, encoding: 'varint' }],
  ['INT8', { field: 2, encoding: 'varint' }],
  ['INT16', { field: 2, encoding: 'varint' }],
  ['INT32', { field: 2, encoding: 'varint' }],
  ['INT64', { field: 3, encoding: 'varint' }],
  ['UINT8', { field: 4, encoding: 'varint' }],
  ['UINT16', { field: 4, encoding: 'varint' }],
  ['UINT32', { field: 4, encoding: 'varint' }],
  ['UINT64', { field: 5, encoding: 'varint' }],
  ['FP32', { field: 6, encoding: 'fixed' }],
  ['FP64', { field: 7, encoding: 'fixed' }],
  ['BYTES', { field: 8, encoding: 'bytes' }],
])

/**
 * Reads the bytes of an InferTensorContents without an object for each element: a request may have millions.
 * Undefined for a datatype that has no typed contents.
 * @param contents absent: there are none
 * @param maxBytes of the raw elements
 * @throws ServeError INVALID_TENSOR, PAYLOAD_TOO_LARGE
 */
export function rawContents(
  { name = '', datatype = '', contents }: Pick<TensorMessage, 'name' | 'datatype' | 'contents'>,
  maxBytes: number,
): RawContents | undefined {
  const form = FIELDS.get(datatype)
  if (form === undefined) return undefined
  if (contents === undefined) return NO_CONTENTS
  const values = { name, contents, field: form.field }
  if (form.encoding === 'bytes') return joinTexts(values, maxBytes)
  const spec = NUMERIC.get(datatype)!
  return form.encoding === 'fixed' ? joinFixed(values, spec) : readVarints(values, spec, maxBytes)
}

/** The values of one field of a message. */
interface Values {
  readonly name: string
  readonly contents: Buffer
  readonly field: number
}

const LENGTH_DELIMITED = 2

/** Calls `take` with the range of each value; packed numbers are one value. */
function eachValue({ name, contents, field }: Values, take: (start: number, end: number) => void): void {
  const reader = protobuf.Reader.create(contents)
  const next = (): boolean => {
    const tag = reader.uint32()
    const bytes = (tag & 7) === LENGTH_DELIMITED ? reader.uint32() : undefined
    start = reader.pos
    if (bytes === undefined) reader.skipType(tag & 7)
    else reader.skip(bytes)
    return tag >>> 3 === field
  }
  let start = 0
  while (reader.pos < reader.len) {
    let isWanted: boolean
    try {
      isWanted = next()
    } catch {
      throw malformed(name)
    }
    if (isWanted) take(start, reader.pos)
  }
}

/** Each element behind its length in four bytes. */
function joinTexts(values: Values, maxBytes: number): RawContents {
  let count = 0
  let size = 0
  eachValue(values, (start, end) => {
    count += 1
    size += 4 + end - start
  })
  if (size > maxBytes) throw tooLarge()
  const data = Buffer.allocUnsafe(size)
  let at = 0
  eachValue(values, (start, end) => {
    at = data.writeUInt32LE(end - start, at)
    at += values.contents.copy(data, at, start, end)
  })
  return { count, data }
}

/** Floats stand on the wire as they do in a raw tensor. */
function joinFixed(values: Values, { array }: DatatypeSpec): RawContents {
  const width = array.BYTES_PER_ELEMENT
  const data = Buffer.allocUnsafe(values.contents.length)
  let size = 0
  eachValue(values, (start, end) => {
    if ((end - start) % width !== 0) throw malformed(values.name)
    size += values.contents.copy(data, size, start, end)
  })
  return { count: size / width, data: data.subarray(0, size) }
}

/** Reads numbers of up to 64 bits as two halves, because a bigint for each would take most of the time. */
function readVarints(values: Values, { kind, array, min, max }: DatatypeSpec, maxBytes: number): RawContents {
  const { name, contents } = values
  let count = 0
  eachValue(values, (start, end) => {
    for (let at = start; at < end; at += 1) if (contents[at]! < 0x80) count += 1
  })
  if (count * array.BYTES_PER_ELEMENT > maxBytes) throw tooLarge()
  const elements = new array(count)
  const wide = kind === 'wide integer' ? new Uint32Array(elements.buffer) : undefined
  const narrow = elements as Int32Array
  const [least, most] = [Number(min), Number(max)]
  let index = 0
  eachValue(values, (start, end) => {
    for (let at = start; at < end; index += 1) {
      let low = 0
      let high = 0
      let byte = 0x80
      for (let shift = 0; byte >= 0x80; shift += 7) {
        if (at === end || shift > 63) throw malformed(name)
        byte = contents[at++]!
        const bits = byte & 0x7f
        if (shift < 32) low |= bits << shift
        if (shift > 28) high |= bits << (shift - 32)
        else if (shift === 28) high = bits >> 4
      }
      if (wide !== undefined) {
        wide[2 * index] = low
        wide[2 * index + 1] = high
        continue
      }
      const value = kind === 'boolean' ? Number((low | high) !== 0) : least < 0 ? low : low >>> 0
      if (value < least || value > most)
        throw invalid(name, `data must contain only whole numbers from ${least} to ${most}`)
      narrow[index] = value
    }
  })
  return { count, data: new Uint8Array(elements.buffer) }
}

function malformed(name: string): ServeError {
  return invalid(name, 'its contents are not valid')
}

function tooLarge(): ServeError {
  return new ServeError('PAYLOAD_TOO_LARGE', 'The request is larger than max_request_size')
}
