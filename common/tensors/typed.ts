import { joinElements, splitElements } from './bytes.ts'
import { NUMERIC, type Datatype, type NumericData } from './datatypes.ts'
import { tensorFromJson } from './from-json.ts'
import { checkSize, invalid, type RawTensor, type TensorHead } from './tensor.ts'

/**
 * The elements of a tensor as a handler gets them: a typed array, or for BYTES one Uint8Array (a Buffer) per
 * element. The type says Uint8Array because handler authors may lack the types of Node.js.
 */
export type TensorData = NumericData | Uint8Array[]

/** The elements of a raw tensor, except BYTES. They share its memory if it is aligned. */
export function arrayOf({ datatype, data }: Pick<RawTensor, 'datatype' | 'data'>): NumericData {
  const { array } = NUMERIC.get(datatype)!
  const size = array.BYTES_PER_ELEMENT
  if (data.byteOffset % size === 0) {
    const Shared = array as unknown as new (
      buffer: ArrayBufferLike,
      offset: number,
      length: number,
    ) => NumericData
    return new Shared(data.buffer, data.byteOffset, data.byteLength / size)
  }
  // `slice` of a Buffer would share the memory; this copies.
  return new array(new Uint8Array(data).buffer)
}

/** The elements as the handler gets them. */
export function dataOf(tensor: RawTensor): TensorData {
  return tensor.datatype === 'BYTES' ? splitElements(tensor) : arrayOf(tensor)
}

/**
 * Converts the handler's elements to raw: a typed array of the datatype as it is; an array of numbers,
 * bigints, booleans, strings or bytes, nested or flat, element by element.
 * @throws ServeError INVALID_TENSOR when the elements do not match datatype and shape
 */
export function rawOf(head: TensorHead, data: unknown): RawTensor {
  return checkSize({ ...head, data: elements(head, data) })
}

function elements(head: TensorHead, data: unknown): Uint8Array {
  const { name, datatype } = head
  if (Array.isArray(data))
    return isBytesList(datatype, data) ? joinElements(data) : tensorFromJson(head, data).data
  if (!ArrayBuffer.isView(data)) throw invalid(name, 'data must be a typed array or a list')
  if (datatype === 'BYTES') throw invalid(name, 'data of BYTES must be a list of strings or bytes')
  const isBytes = data instanceof Uint8Array
  if (!isBytes && data.constructor !== NUMERIC.get(datatype)!.array) {
    return tensorFromJson(head, Array.from(data as unknown as ArrayLike<unknown>)).data
  }
  return isBytes ? data : new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
}

function isBytesList(datatype: Datatype, data: unknown[]): data is (string | Uint8Array)[] {
  return datatype === 'BYTES' && data.every((each) => typeof each === 'string' || each instanceof Uint8Array)
}
