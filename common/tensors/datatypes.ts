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

/** 16-bit floats, for which Node.js 20 has no typed array: conversion between numbers and bit patterns. */

const one = new Float32Array(1)
const oneBits = new Uint32Array(one.buffer)

/** IEEE 754 binary16: one sign, five exponent and ten fraction bits. */
export function fromHalf(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1
  const exponent = (bits >> 10) & 0x1f
  const fraction = bits & 0x3ff
  if (exponent === 0x1f) return fraction === 0 ? sign * Infinity : NaN
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15))
}

/** Rounds to nearest, ties to even. Beyond 65504: infinity. */
export function toHalf(value: number): number {
  if (Number.isNaN(value)) return 0x7e00
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0
  const size = Math.abs(value)
  if (size >= 65520) return sign | 0x7c00
  const exponent = size < 2 ** -14 ? -14 : Math.floor(Math.log2(size))
  const steps = roundToEven(size / 2 ** (exponent - 10))
  // A fraction that rounds up to the next power carries into the exponent.
  return sign | (size < 2 ** -14 ? steps : steps - 1024 + ((exponent + 15) << 10))
}

/** bfloat16: the upper half of a 32-bit float. */
export function fromBrain(bits: number): number {
  oneBits[0] = bits << 16
  return one[0]!
}

export function toBrain(value: number): number {
  if (Number.isNaN(value)) return 0x7fc0
  one[0] = value
  const bits = oneBits[0]!
  return ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16) & 0xffff
}

/** Converts the bit patterns of an FP16 tensor to numbers. */
export function halfToFloats(bits: Uint16Array): Float32Array {
  return Float32Array.from(bits, fromHalf)
}

/** Converts numbers to the bit patterns of an FP16 tensor. */
export function floatsToHalf(values: ArrayLike<number>): Uint16Array {
  return Uint16Array.from(values, toHalf)
}

/** Converts the bit patterns of a BF16 tensor to numbers. */
export function brainToFloats(bits: Uint16Array): Float32Array {
  return Float32Array.from(bits, fromBrain)
}

/** Converts numbers to the bit patterns of a BF16 tensor. */
export function floatsToBrain(values: ArrayLike<number>): Uint16Array {
  return Uint16Array.from(values, toBrain)
}

function roundToEven(value: number): number {
  const below = Math.floor(value)
  const rest = value - below
  if (rest !== 0.5) return Math.round(value)
  return below % 2 === 0 ? below : below + 1
}
