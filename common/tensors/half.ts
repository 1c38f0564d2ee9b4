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
