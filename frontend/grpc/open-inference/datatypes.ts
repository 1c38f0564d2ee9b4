import type { InferTensorContents } from './messages.ts'

/** What the elements of a tensor are, in JSON and in `contents`. */
export interface Datatype {
  /** The field of InferTensorContents; absent: there is none for it. */
  readonly field?: keyof InferTensorContents
  readonly kind: 'integer' | 'float' | 'boolean' | 'bytes'
  /** Range of an integer. */
  readonly min?: bigint
  readonly max?: bigint
  /** Elements of a little-endian raw tensor, whose start is aligned; absent for BYTES. */
  readonly fromRaw?: (raw: ArrayBuffer) => ArrayLike<number | bigint | boolean> & { join(by: string): string }
  /** Bytes of one raw element. */
  readonly size?: number
}

/** The datatypes of the Open Inference Protocol. */
export const DATATYPES: ReadonlyMap<string, Datatype> = new Map<string, Datatype>([
  ['BOOL', { field: 'bool_contents', kind: 'boolean', size: 1, fromRaw: booleans }],
  ['INT8', integer('int_contents', 8, true, (raw) => new Int8Array(raw))],
  ['INT16', integer('int_contents', 16, true, (raw) => new Int16Array(raw))],
  ['INT32', integer('int_contents', 32, true, (raw) => new Int32Array(raw))],
  ['INT64', integer('int64_contents', 64, true, (raw) => new BigInt64Array(raw))],
  ['UINT8', integer('uint_contents', 8, false, (raw) => new Uint8Array(raw))],
  ['UINT16', integer('uint_contents', 16, false, (raw) => new Uint16Array(raw))],
  ['UINT32', integer('uint_contents', 32, false, (raw) => new Uint32Array(raw))],
  ['UINT64', integer('uint64_contents', 64, false, (raw) => new BigUint64Array(raw))],
  ['FP16', { kind: 'float', size: 2, fromRaw: (raw) => Float32Array.from(new Uint16Array(raw), half) }],
  ['BF16', { kind: 'float', size: 2, fromRaw: brainFloats }],
  ['FP32', { field: 'fp32_contents', kind: 'float', size: 4, fromRaw: (raw) => new Float32Array(raw) }],
  ['FP64', { field: 'fp64_contents', kind: 'float', size: 8, fromRaw: (raw) => new Float64Array(raw) }],
  ['BYTES', { field: 'bytes_contents', kind: 'bytes' }],
])

function integer(
  field: keyof InferTensorContents,
  bits: number,
  signed: boolean,
  fromRaw: NonNullable<Datatype['fromRaw']>,
): Datatype {
  const max = 2n ** BigInt(signed ? bits - 1 : bits) - 1n
  return { field, kind: 'integer', min: signed ? -max - 1n : 0n, max, size: bits / 8, fromRaw }
}

function booleans(raw: ArrayBuffer): boolean[] {
  return Array.from(new Uint8Array(raw), (byte) => byte !== 0)
}

/** The upper half of a 32-bit float. */
function brainFloats(raw: ArrayBuffer): Float32Array {
  return new Float32Array(Uint32Array.from(new Uint16Array(raw), (bits) => bits << 16).buffer)
}

/** A 16-bit float: one sign, five exponent and ten fraction bits. */
function half(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1
  const exponent = (bits >> 10) & 0x1f
  const fraction = bits & 0x3ff
  if (exponent === 0x1f) return fraction === 0 ? sign * Infinity : NaN
  const value = exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15)
  return sign * value
}
