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
  const values = new Values(name, contents, form.field)
  if (form.encoding === 'bytes') return joinTexts(values, maxBytes)
  const spec = NUMERIC.get(datatype)!
  return form.encoding === 'fixed' ? joinFixed(values, spec) : readVarints(values, spec, maxBytes)
}

const VARINT = 0
const FIXED_64 = 1
const LENGTH = 2
const FIXED_32 = 5

/** Walks the values of one field, each a range of bytes; packed numbers are one value. */
class Values {
  readonly name: string
  readonly bytes: Buffer
  start = 0
  end = 0
  readonly #field: number
  #at = 0

  constructor(name: string, bytes: Buffer, field: number) {
    this.name = name
    this.bytes = bytes
    this.#field = field
  }

  /** Begins again. */
  rewind(): this {
    this.#at = 0
    return this
  }

  /** Sets `start` and `end`. False: there is no further value. */
  next(): boolean {
    // A short text, of which there may be millions.
    const at = this.#at
    if (this.bytes[at] === this.#field * 8 + LENGTH && this.bytes[at + 1]! < 0x80) {
      this.start = at + 2
      this.end = this.#at = this.start + this.bytes[at + 1]!
      if (this.end > this.bytes.byteLength) throw malformed(this.name)
      return true
    }
    while (this.#at < this.bytes.length) {
      const tag = this.#varint()
      this.start = this.#at
      this.#skip(tag % 8)
      if (this.#at > this.bytes.byteLength) throw malformed(this.name)
      this.end = this.#at
      if (Math.floor(tag / 8) === this.#field) return true
    }
    return false
  }

  #skip(wireType: number): void {
    switch (wireType) {
      case VARINT:
        this.#varint()
        break
      case FIXED_64:
        this.#at += 8
        break
      case FIXED_32:
        this.#at += 4
        break
      case LENGTH: {
        const length = this.#varint()
        this.start = this.#at
        this.#at += length
        break
      }
      default:
        throw malformed(this.name)
    }
  }

  /** A tag or a length; others are read again. */
  #varint(): number {
    const { bytes } = this
    let value = 0
    for (let i = 0, factor = 1; i < 10; i += 1, factor *= 128) {
      if (this.#at >= bytes.byteLength) throw malformed(this.name)
      const byte = bytes[this.#at]!
      this.#at += 1
      value += (byte & 0x7f) * factor
      if (byte < 0x80) return value
    }
    throw malformed(this.name)
  }
}

/** Each element behind its length in four bytes. */
function joinTexts(values: Values, maxBytes: number): RawContents {
  let count = 0
  let size = 0
  while (values.next()) {
    count += 1
    size += 4 + values.end - values.start
  }
  if (size > maxBytes) throw tooLarge()
  const data = Buffer.allocUnsafe(size)
  let at = 0
  values.rewind()
  while (values.next()) {
    const length = values.end - values.start
    at = data.writeUInt32LE(length, at)
    if (length > 0) at += values.bytes.copy(data, at, values.start, values.end)
  }
  return { count, data }
}

/** Floats stand on the wire as they do in a raw tensor. */
function joinFixed(values: Values, { array }: DatatypeSpec): RawContents {
  const { bytes } = values
  const width = array.BYTES_PER_ELEMENT
  const data = Buffer.allocUnsafe(bytes.byteLength)
  let size = 0
  while (values.next()) {
    if ((values.end - values.start) % width !== 0) throw malformed(values.name)
    size += bytes.copy(data, size, values.start, values.end)
  }
  return { count: size / width, data: data.subarray(0, size) }
}

function readVarints(values: Values, spec: DatatypeSpec, maxBytes: number): RawContents {
  let count = 0
  while (values.next()) count += varintsIn(values)
  const elements = count * spec.array.BYTES_PER_ELEMENT > maxBytes ? undefined : new spec.array(count)
  if (elements === undefined) throw tooLarge()
  const reader = new VarintReader(values.name, values.bytes)
  values.rewind()
  for (let index = 0; values.next();) {
    reader.at = values.start
    index =
      spec.kind === 'wide integer'
        ? readWide(reader, values.end, new Uint32Array(elements.buffer), index)
        : readNarrow(reader, values.end, elements as Int32Array, index, spec)
  }
  return { count, data: new Uint8Array(elements.buffer) }
}

function varintsIn({ bytes, start, end }: Values): number {
  let count = 0
  for (let at = start; at < end; at += 1) if (bytes[at]! < 0x80) count += 1
  return count
}

/** The next index. */
function readWide(reader: VarintReader, end: number, words: Uint32Array, index: number): number {
  while (reader.at < end) {
    reader.read(end)
    words[2 * index] = reader.low
    words[2 * index + 1] = reader.high
    index += 1
  }
  return index
}

/** The next index. */
function readNarrow(
  reader: VarintReader,
  end: number,
  elements: Int32Array,
  index: number,
  { kind, min, max }: DatatypeSpec,
): number {
  const isFlag = kind === 'boolean'
  const isSigned = min < 0
  const least = Number(min)
  const most = Number(max)
  while (reader.at < end) {
    reader.read(end)
    const low = isSigned ? reader.low : reader.low >>> 0
    const value = isFlag ? Number((reader.low | reader.high) !== 0) : low
    if (value < least || value > most)
      throw invalid(reader.name, `data must contain only whole numbers from ${least} to ${most}`)
    elements[index] = value
    index += 1
  }
  return index
}

/** Reads numbers of up to 64 bits as two halves, because a bigint for each would take most of the time. */
class VarintReader {
  at = 0
  low = 0
  high = 0
  readonly name: string
  readonly #bytes: Buffer

  constructor(name: string, bytes: Buffer) {
    this.name = name
    this.#bytes = bytes
  }

  /** Reads the number at `at`, which must end before `end`. */
  read(end: number): void {
    let low = 0
    let high = 0
    for (let shift = 0; ; shift += 7) {
      if (this.at >= end || shift > 63) throw malformed(this.name)
      const byte = this.#bytes[this.at]!
      this.at += 1
      if (shift < 32) low |= (byte & 0x7f) << shift
      if (shift === 28) high = (byte & 0x7f) >> 4
      else if (shift > 28) high |= (byte & 0x7f) << (shift - 32)
      if (byte < 0x80) break
    }
    this.low = low
    this.high = high
  }
}

function malformed(name: string): ServeError {
  return invalid(name, 'its contents are not valid')
}

function tooLarge(): ServeError {
  return new ServeError('PAYLOAD_TOO_LARGE', 'The request is larger than max_request_size')
}
