import { joinElements, splitElements } from './bytes.ts'
import { NUMERIC, type Datatype, type NumericData } from './datatypes.ts'
import { rawFromJson } from './from-json.ts'
import { checkSize, invalid, type RawTensor, type TensorHead } from './tensor.ts'

/** The elements of a tensor as a handler has them: an array of its datatype, for BYTES one Buffer each (a type that not every handler's author has). */
export type TensorData = NumericData | Uint8Array[]

/** The elements of a raw tensor that is no BYTES. They share its memory where that is aligned. */
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
  // A copy; `slice` of a Buffer would be none.
  return new array(new Uint8Array(data).buffer)
}

/** What the handler gets. */
export function dataOf(tensor: RawTensor): TensorData {
  return tensor.datatype === 'BYTES' ? splitElements(tensor) : arrayOf(tensor)
}

/**
 * What the handler gave, as raw elements: an array of the datatype as it is; lists of numbers, bigints, booleans, texts or bytes,
 * nested or flat, element by element. @throws ServeError INVALID_TENSOR when it does not fit datatype and shape
 */
export function rawOf(head: TensorHead, data: unknown): RawTensor {
  return checkSize({ ...head, data: elements(head, data) })
}

function elements(head: TensorHead, data: unknown): Uint8Array {
  const { name, datatype } = head
  if (Array.isArray(data)) return isBytesList(datatype, data) ? joinElements(data) : rawFromJson(head, data)
  if (!ArrayBuffer.isView(data)) throw invalid(name, 'data is neither a typed array nor a list')
  if (datatype === 'BYTES') throw invalid(name, 'data of BYTES must be a list of texts or bytes')
  const isBytes = data instanceof Uint8Array
  if (!isBytes && data.constructor !== NUMERIC.get(datatype)!.array) {
    return rawFromJson(head, Array.from(data as unknown as ArrayLike<unknown>))
  }
  return isBytes ? data : new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
}

function isBytesList(datatype: Datatype, data: unknown[]): data is (string | Uint8Array)[] {
  return datatype === 'BYTES' && data.every((each) => typeof each === 'string' || each instanceof Uint8Array)
}
