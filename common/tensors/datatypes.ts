/** The datatypes of the Open Inference Protocol, and BF16 as in Triton. */
export const DATATYPE_NAMES = [
  'BOOL',
  'UINT8',
  'UINT16',
  'UINT32',
  'UINT64',
  'INT8',
  'INT16',
  'INT32',
  'INT64',
  'FP16',
  'BF16',
  'FP32',
  'FP64',
  'BYTES',
] as const
export type Datatype = (typeof DATATYPE_NAMES)[number]

/**
 * The elements of a tensor as a handler gets them. FP16 and BF16 are bit patterns (half.ts); BOOL is 0 or 1.
 */
export type NumericData =
  | Uint8Array
  | Uint16Array
  | Uint32Array
  | BigUint64Array
  | Int8Array
  | Int16Array
  | Int32Array
  | BigInt64Array
  | Float32Array
  | Float64Array

interface ArrayType {
  new (bufferOrLength: ArrayBuffer | number): NumericData
  readonly BYTES_PER_ELEMENT: number
}

/** The element type of a datatype. Raw tensors are little-endian, like all machines that Node.js supports. */
export interface DatatypeSpec {
  readonly kind: 'boolean' | 'integer' | 'wide integer' | 'half' | 'brain' | 'float'
  readonly array: ArrayType
  /** Range of an integer type; a bigint for 64 bits. */
  readonly min: number | bigint
  readonly max: number | bigint
}

/** All datatypes except BYTES, whose elements vary in size. */
export const NUMERIC: ReadonlyMap<string, DatatypeSpec> = new Map<string, DatatypeSpec>([
  ['BOOL', { kind: 'boolean', array: Uint8Array, min: 0, max: 1 }],
  ['UINT8', { kind: 'integer', array: Uint8Array, min: 0, max: 0xff }],
  ['UINT16', { kind: 'integer', array: Uint16Array, min: 0, max: 0xffff }],
  ['UINT32', { kind: 'integer', array: Uint32Array, min: 0, max: 0xffffffff }],
  ['UINT64', { kind: 'wide integer', array: BigUint64Array, min: 0n, max: 2n ** 64n - 1n }],
  ['INT8', { kind: 'integer', array: Int8Array, min: -0x80, max: 0x7f }],
  ['INT16', { kind: 'integer', array: Int16Array, min: -0x8000, max: 0x7fff }],
  ['INT32', { kind: 'integer', array: Int32Array, min: -0x80000000, max: 0x7fffffff }],
  ['INT64', { kind: 'wide integer', array: BigInt64Array, min: -(2n ** 63n), max: 2n ** 63n - 1n }],
  ['FP16', { kind: 'half', array: Uint16Array, min: 0, max: 0xffff }],
  ['BF16', { kind: 'brain', array: Uint16Array, min: 0, max: 0xffff }],
  ['FP32', { kind: 'float', array: Float32Array, min: 0, max: 0 }],
  ['FP64', { kind: 'float', array: Float64Array, min: 0, max: 0 }],
])

export function isDatatype(name: unknown): name is Datatype {
  return name === 'BYTES' || (typeof name === 'string' && NUMERIC.has(name))
}
