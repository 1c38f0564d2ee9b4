import { ServeError } from '../../../protocol/errors.ts'
import { DATATYPES } from './datatypes.ts'
import type { InferInputTensor } from './messages.ts'

/** Bytes of the length that stands before each element of a raw BYTES tensor. */
const LENGTH_BYTES = 4

/** The elements of one raw tensor as the inside of a JSON array. @throws ServeError MALFORMED_BODY when its size does not fit */
export function rawElements(tensor: InferInputTensor, raw: Buffer): string {
  const { name = '', datatype = '' } = tensor
  const type = DATATYPES.get(datatype)
  if (type === undefined) throw invalid(name, `datatype ${datatype} is unknown`)
  const count = elementCount(tensor)
  if (type.fromRaw === undefined) return bytesElements(name, raw, count)
  if (BigInt(raw.byteLength) !== count * BigInt(type.size!)) {
    throw invalid(name, `${raw.byteLength} bytes are not what its shape and datatype say`)
  }
  const aligned = raw.buffer.slice(raw.byteOffset, raw.byteOffset + raw.byteLength) as ArrayBuffer
  const elements = type.fromRaw(aligned)
  if (type.kind === 'float' && !(elements as Float32Array).every(Number.isFinite)) {
    throw notFinite(name)
  }
  return elements.join(',')
}

function bytesElements(name: string, raw: Buffer, count: bigint): string {
  const elements: string[] = []
  for (let offset = 0; offset < raw.byteLength;) {
    const start = offset + LENGTH_BYTES
    const end = start <= raw.byteLength ? start + raw.readUInt32LE(offset) : Infinity
    if (end > raw.byteLength) throw invalid(name, 'its last element is cut off')
    elements.push(`"${raw.toString('base64', start, end)}"`)
    offset = end
  }
  if (BigInt(elements.length) !== count) throw invalid(name, 'it has not as many elements as its shape says')
  return elements.join(',')
}

/** As a bigint: a shape may say anything. */
function elementCount({ shape }: InferInputTensor): bigint {
  return shape.reduce((product, size) => product * BigInt(size), 1n)
}

export function notFinite(name = ''): ServeError {
  return invalid(name, 'it holds a number that JSON cannot say (NaN or infinite)')
}

function invalid(name: string, why: string): ServeError {
  return new ServeError('MALFORMED_BODY', `Tensor ${name} cannot be used: ${why}.`)
}
