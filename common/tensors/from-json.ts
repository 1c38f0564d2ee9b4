import { joinElements } from './bytes.ts'
import { type DatatypeSpec, NUMERIC, toBrain, toHalf } from './datatypes.ts'
import { invalid, type RawTensor, shapeOf, type TensorHead } from './tensor.ts'

/**
 * Reads a tensor of JSON, whose `data` is nested or flat. Integers may be bigints and, where
 * a datatype has 64 bits, strings. `null` is NaN.
 * @throws ServeError INVALID_TENSOR
 */
export function tensorFromJson(head: TensorHead, data: unknown): RawTensor {
  if (!Array.isArray(data)) throw invalid(head.name, 'data must be a list')
  const leaves = flatten(data, head.name)
  const shape = shapeOf(head, leaves.length)
  return { ...head, shape, data: rawElements(head, leaves) }
}

function rawElements(head: TensorHead, leaves: readonly unknown[]): Uint8Array {
  const count = leaves.length
  const spec = NUMERIC.get(head.datatype)
  if (spec === undefined) return joinElements(leaves.map((leaf) => text(leaf, head.name)))
  const array = new spec.array(count)
  if (spec.kind === 'wide integer') {
    setWide(array.buffer as ArrayBuffer, leaves, spec, head)
    return new Uint8Array(array.buffer)
  }
  const read = READERS[spec.kind]
  for (let i = 0; i < count; i += 1) {
    const value = read(leaves[i], spec)
    if (value === undefined) throw invalid(head.name, `data must contain only ${head.datatype} values`)
    array[i] = value
  }
  return new Uint8Array(array.buffer)
}

const MAX_DEPTH = 32

/**
 * 64-bit integers, written as two halves: a bigint for each would take most of the time of a large request.
 */
function setWide(
  buffer: ArrayBuffer,
  leaves: readonly unknown[],
  spec: DatatypeSpec,
  head: TensorHead,
): void {
  const words = new Uint32Array(buffer)
  const wide = new BigInt64Array(buffer)
  for (let i = 0; i < leaves.length; i += 1) {
    const leaf = leaves[i]
    if (typeof leaf === 'number' && Number.isSafeInteger(leaf) && leaf >= spec.min) {
      words[2 * i] = leaf // the low half, modulo 2^32
      words[2 * i + 1] = Math.floor(leaf / 2 ** 32)
    } else {
      const value = wideInteger(leaf, spec)
      if (value === undefined) throw invalid(head.name, `data must contain only ${head.datatype} values`)
      wide[i] = value
    }
  }
}

function wideInteger(leaf: unknown, { min, max }: DatatypeSpec): bigint | undefined {
  if (!Number.isInteger(leaf) && typeof leaf !== 'bigint' && !isDigits(leaf)) return undefined
  const value = BigInt(leaf as number | bigint | string)
  return value >= min && value <= max ? value : undefined
}

/** Most data is flat already. */
function flatten(data: readonly unknown[], name: string): readonly unknown[] {
  if (isFlat(data)) return data
  const leaves: unknown[] = []
  addLeaves(data, leaves, name, 1)
  return leaves
}

/** A call for each of a million elements would take as long as all the rest. */
function isFlat(data: readonly unknown[]): boolean {
  for (const each of data) if (typeof each === 'object' && Array.isArray(each)) return false
  return true
}

function addLeaves(data: readonly unknown[], leaves: unknown[], name: string, depth: number): void {
  if (depth > MAX_DEPTH) throw invalid(name, `data must not be nested deeper than ${MAX_DEPTH} levels`)
  for (const each of data) {
    if (Array.isArray(each)) addLeaves(each as unknown[], leaves, name, depth + 1)
    else leaves.push(each)
  }
}

type Read = (leaf: unknown, spec: DatatypeSpec) => number | undefined

const READERS: Readonly<Record<Exclude<DatatypeSpec['kind'], 'wide integer'>, Read>> = {
  boolean: (leaf) => (typeof leaf === 'boolean' || leaf === 0 || leaf === 1 ? Number(leaf) : undefined),
  integer: (leaf, { min, max }) =>
    Number.isInteger(leaf) && (leaf as number) >= min && (leaf as number) <= max
      ? (leaf as number)
      : undefined,
  half: (leaf) => mapped(float(leaf), toHalf),
  brain: (leaf) => mapped(float(leaf), toBrain),
  float,
}

function float(leaf: unknown): number | undefined {
  if (typeof leaf === 'number' || typeof leaf === 'bigint') return Number(leaf)
  return leaf === null ? NaN : undefined
}

function mapped(value: number | undefined, map: (value: number) => number): number | undefined {
  return value === undefined ? undefined : map(value)
}

/** An integer as a string. No datatype holds one of 400 digits. */
function isDigits(leaf: unknown): leaf is string {
  return typeof leaf === 'string' && leaf.length <= 400 && /^-?\d+$/.test(leaf)
}

function text(leaf: unknown, name: string): string | Uint8Array {
  if (typeof leaf === 'string' || leaf instanceof Uint8Array) return leaf
  throw invalid(name, 'data must contain only strings')
}
