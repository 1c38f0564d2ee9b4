import { ServeError } from '../errors.ts'
import { isObject } from '../json.ts'
import { isNestedTooDeep, MAX_NESTING } from '../nesting.ts'
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
  if (!isShape(shape))
    throw invalid(name, `shape must be a list of whole numbers from 0, not ${brief(shape)}`)
  const head: TensorHead = { name, datatype, shape }
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

function isShape(shape: unknown): shape is number[] {
  if (!Array.isArray(shape) || shape.length > MAX_DIMENSIONS) return false
  return shape.every((size) => Number.isSafeInteger(size) && (size as number) >= 0)
}

/**
 * The number of elements that the shape implies. @throws ServeError INVALID_TENSOR when it exceeds 2^32 - 1
 */
export function elementCount({ name, shape }: Pick<RawTensor, 'name' | 'shape'>): number {
  let count = 1
  for (const size of shape) count *= size
  if (count <= 0xffffffff) return count
  throw invalid(name, 'shape must not have more than 4294967295 elements')
}

/** Checks that data and shape match. @throws ServeError INVALID_TENSOR */
export function checkSize(tensor: RawTensor): RawTensor {
  const { name, datatype, data } = tensor
  const count = elementCount(tensor)
  const spec = NUMERIC.get(datatype)
  const fits =
    spec === undefined
      ? countElements(name, data) === count
      : data.byteLength === count * spec.array.BYTES_PER_ELEMENT
  if (fits) return tensor
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
  return (JSON.stringify(value) ?? 'undefined').slice(0, 80)
}
