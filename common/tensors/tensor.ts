import { ServeError } from '../errors.ts'
import { exactJson } from '../exact-json.ts'
import { isObject, isNestedTooDeep, MAX_NESTING } from '../json.ts'
import { isDatatype, NUMERIC, type Datatype } from './datatypes.ts'

export type Parameters = Readonly<Record<string, unknown>>

/**
 * A tensor with raw elements: row-major and little-endian. Each BYTES element follows its length (4 bytes).
 */
export interface RawTensor {
  readonly name: string
  readonly datatype: Datatype
  /** Integers, 0 or greater. */
  readonly shape: readonly number[]
  readonly parameters?: Parameters
  readonly data: Uint8Array
}

/** A tensor without its elements, as in JSON. */
export interface TensorHead {
  name: string
  datatype: Datatype
  /** One size may be -1: the number of elements decides (`shapeOf`). */
  shape: number[]
  parameters?: Parameters
}

const MAX_DIMENSIONS = 32

/** Validates name, datatype, shape and parameters of a tensor. @throws ServeError INVALID_TENSOR */
export function checkHead(value: unknown): TensorHead {
  if (!isObject(value)) throw new ServeError('INVALID_TENSOR', 'A tensor must be a JSON object')
  const { name, datatype, shape, parameters } = value
  if (typeof name !== 'string') throw new ServeError('INVALID_TENSOR', 'A tensor must have a name')
  if (!isDatatype(datatype)) throw invalid(name, `datatype ${brief(datatype)} is not supported`)
  const sizes = readShape(shape)
  if (sizes === undefined)
    throw invalid(
      name,
      `shape must be a list of whole numbers from 0, one of which may be -1, not ${brief(shape)}`,
    )
  const head: TensorHead = { name, datatype, shape: sizes }
  const checked = checkParameters(parameters)
  if (checked !== undefined) head.parameters = checked
  return head
}

/**
 * Validates the parameters of a request, response or tensor; null counts as absent. @throws ServeError
 * INVALID_TENSOR
 */
export function checkParameters(value: unknown): Parameters | undefined {
  if (value === undefined || value === null) return undefined
  if (!isObject(value)) throw new ServeError('INVALID_TENSOR', 'parameters must be a JSON object')
  if (!isNestedTooDeep(value)) return value
  throw new ServeError('INVALID_TENSOR', `parameters must not be nested deeper than ${MAX_NESTING} levels`)
}

/**
 * The sizes of a shape as clients write it: a list of whole numbers from 0, of which one may be -1. A number
 * is a list of itself. Undefined for anything else.
 */
export function readShape(shape: unknown): number[] | undefined {
  const sizes: unknown = typeof shape === 'number' ? [shape] : shape
  if (!Array.isArray(sizes) || sizes.length > MAX_DIMENSIONS) return undefined
  if (!sizes.every((size) => Number.isSafeInteger(size) && (size as number) >= -1)) return undefined
  return sizes.indexOf(-1) === sizes.lastIndexOf(-1) ? (sizes as number[]) : undefined
}

/**
 * A shape as clients write it (`readShape`), for `count` elements: -1 becomes the count divided by the other
 * sizes. Undefined if they do not match.
 */
export function resolveShape(written: unknown, count: number): readonly number[] | undefined {
  const shape = readShape(written)
  if (shape === undefined) return undefined
  const known = shape.reduce((product, size) => product * Math.abs(size), 1)
  if (!shape.includes(-1)) return known === count ? shape : undefined
  const rest = count / known
  return Number.isInteger(rest) ? shape.map((size) => (size < 0 ? rest : size)) : undefined
}

/** As `resolveShape`. @throws ServeError INVALID_TENSOR */
export function shapeOf(head: Pick<TensorHead, 'name' | 'shape'>, count: number): readonly number[] {
  const wanted = elementCount(head)
  const shape = resolveShape(head.shape, count)
  if (shape !== undefined) return shape
  throw invalid(
    head.name,
    head.shape.includes(-1)
      ? `data of ${count} elements does not match shape [${head.shape.join(',')}]`
      : `data must have ${wanted} elements to match shape, not ${count}`,
  )
}

/**
 * The number of elements that the shape implies; -1 counts as 1.
 * @throws ServeError INVALID_TENSOR when it exceeds 2^32 - 1
 */
export function elementCount({ name, shape }: Pick<RawTensor, 'name' | 'shape'>): number {
  let count = 1
  for (const size of shape) count *= Math.abs(size)
  if (count <= 0xffffffff) return count
  throw invalid(name, 'shape must not have more than 4294967295 elements')
}

/** Checks that data and shape match, and replaces -1 in the shape. @throws ServeError INVALID_TENSOR */
export function checkSize(tensor: RawTensor): RawTensor {
  const { name, datatype, data } = tensor
  elementCount(tensor)
  const spec = NUMERIC.get(datatype)
  const count =
    spec === undefined ? countElements(name, data) : data.byteLength / spec.array.BYTES_PER_ELEMENT
  const shape = resolveShape(tensor.shape, count)
  if (shape === tensor.shape) return tensor
  if (shape !== undefined) return { ...tensor, shape }
  throw invalid(name, `data of ${data.byteLength} bytes does not match shape and datatype`)
}

/** Counts the elements of raw BYTES. @throws ServeError INVALID_TENSOR */
function countElements(name: string, data: Uint8Array): number {
  let count = 0
  for (let at = 0; at < data.length; count += 1) at = elementEnd(name, data, at)
  return count
}

/** The end of the element whose length begins at `at`. @throws ServeError INVALID_TENSOR */
export function elementEnd(name: string, data: Uint8Array, at: number): number {
  const start = at + 4
  if (start <= data.length) {
    // Negative: of 2 GiB or more. As a number without a sign it would be an object of the heap.
    const length = data[at]! | (data[at + 1]! << 8) | (data[at + 2]! << 16) | (data[at + 3]! << 24)
    if (length >= 0 && length <= data.length - start) return start + length
  }
  throw invalid(name, 'the last element of data is incomplete')
}

export function invalid(name: string, why: string): ServeError {
  return new ServeError('INVALID_TENSOR', `Tensor ${name.slice(0, 200)} cannot be used: ${why}`)
}

function brief(value: unknown): string {
  // The whole of a long list would take as long as its request.
  if (Array.isArray(value) && value.length > MAX_DIMENSIONS) return `a list of ${value.length}`
  return (exactJson(value) ?? 'undefined').slice(0, 80)
}
