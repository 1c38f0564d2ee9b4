import { isUtf8 } from 'node:buffer'
import { splitElements } from './bytes.ts'
import { NUMERIC } from './datatypes.ts'
import { fromBrain, fromHalf } from './half.ts'
import type { RawTensor } from './tensor.ts'
import { arrayOf } from './typed.ts'

/** A tensor as JSON text with flat `data`. Integers keep all their digits. NaN and infinity become null. */
export function tensorJson(tensor: RawTensor): string {
  const { name, datatype, shape } = tensor
  const spec = NUMERIC.get(datatype)
  const { data, parameters } =
    spec === undefined ? bytesJson(tensor) : { ...tensor, data: numbersJson(tensor) }
  const said = parameters === undefined ? '' : `,"parameters":${JSON.stringify(parameters)}`
  const head = `{"name":${JSON.stringify(name)},"shape":[${shape.join(',')}],"datatype":"${datatype}"`
  return `${head}${said},"data":[${data}]}`
}

/**
 * A JSON object whose last key is a list of tensors; `text` writes one tensor. Elements go straight into the
 * text.
 */
export function withTensors(
  head: object,
  key: 'inputs' | 'outputs',
  tensors: readonly RawTensor[],
  text: (tensor: RawTensor) => string = tensorJson,
): string {
  const open = JSON.stringify(head).slice(0, -1)
  return `${open}${open === '{' ? '' : ','}"${key}":[${tensors.map(text).join(',')}]}`
}

/** The numbers of a tensor as the inside of a flat JSON array. */
export function numbersJson(tensor: RawTensor): string {
  const { kind } = NUMERIC.get(tensor.datatype)!
  const array = arrayOf(tensor)
  switch (kind) {
    case 'boolean':
      return Array.from(array as Uint8Array, (byte) => byte !== 0).join(',')
    case 'half':
      return floats(Array.from(array as Uint16Array, fromHalf))
    case 'brain':
      return floats(Array.from(array as Uint16Array, fromBrain))
    case 'float':
      return floats(array as Float32Array)
    case 'wide integer':
      return wholeNumbers(array as BigInt64Array | BigUint64Array).join(',')
    default:
      return array.join(',')
  }
}

/** A bigint only for what a number does not hold: texts of bigints take ten times as long. */
function wholeNumbers(array: BigInt64Array | BigUint64Array): (number | bigint)[] {
  const { buffer, byteOffset, length } = array
  const low = new Uint32Array(buffer, byteOffset, 2 * length)
  const high = array instanceof BigInt64Array ? new Int32Array(buffer, byteOffset, 2 * length) : low
  const numbers = new Array<number | bigint>(length)
  for (let i = 0; i < length; i += 1) {
    const number = high[2 * i + 1]! * 2 ** 32 + low[2 * i]!
    numbers[i] = Number.isSafeInteger(number) ? number : array[i]!
  }
  return numbers
}

function floats(values: number[] | Float32Array | Float64Array): string {
  if ((values as number[]).every(Number.isFinite)) return values.join(',')
  return Array.from(values, (value) => (Number.isFinite(value) ? value : 'null')).join(',')
}

/**
 * JSON strings cannot hold other bytes than UTF-8: such elements are base64, and `content_type` says so (as
 * in MLServer).
 */
function bytesJson(tensor: RawTensor): { data: string; parameters: RawTensor['parameters'] } {
  const elements = splitElements(tensor)
  if (elements.every((element) => isUtf8(element))) {
    const texts = elements.map((element) => JSON.stringify(element.toString()))
    return { data: texts.join(','), parameters: tensor.parameters }
  }
  const parameters = { ...tensor.parameters, content_type: 'base64' }
  return { data: elements.map((element) => `"${element.toString('base64')}"`).join(','), parameters }
}

/** The numbers of a tensor as JSON arrays, nested according to the shape. */
export function elementsJson(tensor: RawTensor): string {
  const [, ...inner] = tensor.shape
  const flat = numbersJson(tensor)
  if (inner.length === 0) return tensor.shape.length === 0 ? flat : `[${flat}]`
  let rows = flat === '' ? [] : flat.split(',')
  for (const size of inner.reverse()) {
    const nested: string[] = []
    for (let i = 0; i < rows.length; i += size) nested.push(`[${rows.slice(i, i + size).join(',')}]`)
    rows = nested
  }
  return `[${rows.join(',')}]`
}
