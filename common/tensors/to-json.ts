import { ServeError } from '../errors.ts'
import { exactJson } from '../exact-json.ts'
import { splitElements, textElements } from './bytes.ts'
import { fromBrain, fromHalf, NUMERIC } from './datatypes.ts'
import type { RawTensor } from './tensor.ts'
import { arrayOf } from './typed.ts'

/** A tensor as JSON text with flat `data`. Integers keep all their digits. NaN and infinity become null. */
export function tensorJson(tensor: RawTensor): string {
  const { name, datatype, shape } = tensor
  const spec = NUMERIC.get(datatype)
  const { data, parameters } =
    spec === undefined ? bytesJson(tensor) : { ...tensor, data: numbersJson(tensor) }
  const said = parameters === undefined ? '' : `,"parameters":${exactJson(parameters)}`
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
  const open = exactJson(head).slice(0, -1)
  return `${open}${open === '{' ? '' : ','}"${key}":[${tensors.map(text).join(',')}]}`
}

/** The numbers of a tensor as the inside of a flat JSON array. */
export function numbersJson(tensor: RawTensor): string {
  const { kind } = NUMERIC.get(tensor.datatype)!
  const array = arrayOf(tensor)
  switch (kind) {
    case 'boolean':
      return texts(array as Uint8Array, BOOLEANS, (byte) => String(byte !== 0))
    case 'half':
      return texts(array as Uint16Array, HALVES, (bits) => floatText(fromHalf(bits)))
    case 'brain':
      return texts(array as Uint16Array, BRAINS, (bits) => floatText(fromBrain(bits)))
    case 'float':
      return floats(array as Float32Array)
    case 'wide integer':
      return wholeNumbers(array as BigInt64Array | BigUint64Array).join(',')
    default:
      return array.join(',')
  }
}

/** The texts of the elements that were written before, by their bits: writing a number takes far longer. */
const BOOLEANS: string[] = []
const HALVES: string[] = []
const BRAINS: string[] = []

function texts(array: Uint8Array | Uint16Array, known: string[], write: (bits: number) => string): string {
  const list = new Array<string>(array.length)
  for (let i = 0; i < array.length; i += 1) list[i] = known[array[i]!] ??= write(array[i]!)
  return list.join(',')
}

function floatText(value: number): string {
  return Number.isFinite(value) ? String(value) : 'null'
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

function floats(values: Float32Array | Float64Array): string {
  for (const value of values) if (!Number.isFinite(value)) return Array.from(values, floatText).join(',')
  return values.join(',')
}

/**
 * JSON strings cannot hold other bytes than UTF-8: such elements are base64, and `content_type` says so (as
 * in MLServer).
 */
function bytesJson(tensor: RawTensor): { data: string; parameters: RawTensor['parameters'] } {
  const json = textsJson(tensor)
  if (json !== undefined) return { data: json, parameters: tensor.parameters }
  return { data: base64Json(tensor), parameters: { ...tensor.parameters, content_type: 'base64' } }
}

/** BYTES as the inside of a JSON array of strings; undefined if one is not UTF-8. */
export function textsJson(tensor: RawTensor): string | undefined {
  const list = textElements(tensor)
  return list === undefined ? undefined : JSON.stringify(list).slice(1, -1)
}

/** BYTES as the inside of a JSON array of strings in base64. */
export function base64Json(tensor: RawTensor): string {
  return splitElements(tensor)
    .map((element) => `"${element.toString('base64')}"`)
    .join(',')
}

/**
 * The numbers of a tensor as JSON arrays, nested according to the shape.
 * @param maxBytes of the text, at one digit for each number; the text itself is not measured
 * @throws ServeError PAYLOAD_TOO_LARGE
 */
export function elementsJson(tensor: RawTensor, maxBytes: number): string {
  const [outer, ...inner] = tensor.shape
  if (outer === undefined) return numbersJson(tensor)
  if (tensor.data.byteLength > 0 && leastBytes(tensor.shape) > maxBytes) throw tooLarge()
  const flat = numbersJson(tensor)
  if (inner.length === 0 || flat === '') return `[${flat}]`
  const open = '['.repeat(tensor.shape.length)
  const close = ']'.repeat(tensor.shape.length)
  return `${open}${nested(flat.split(','), inner)}${close}`
}

/** Bytes of the brackets of nested lists, with a digit and a comma for each number. */
function leastBytes(shape: readonly number[]): number {
  let lists = 1
  let sum = 0
  for (const size of shape) {
    sum += 2 * lists
    lists *= size
  }
  return sum + 2 * lists - 1
}

/** Joins numbers by commas, with the brackets of all lists that end there. */
function nested(numbers: readonly string[], inner: readonly number[]): string {
  const sizes: number[] = []
  inner.reduceRight((size, each) => (sizes.push(size * each), size * each), 1)
  const separators = Array.from({ length: sizes.length + 1 }, (_, ends) => {
    return `${']'.repeat(ends)},${'['.repeat(ends)}`
  })
  const pieces = new Array<string>(2 * numbers.length - 1)
  for (let i = 0; i < numbers.length; i += 1) {
    pieces[2 * i] = numbers[i]!
    if (i + 1 === numbers.length) break
    let ends = 0
    while (ends < sizes.length && (i + 1) % sizes[ends]! === 0) ends += 1
    pieces[2 * i + 1] = separators[ends]!
  }
  return pieces.join('')
}

function tooLarge(): ServeError {
  return new ServeError('PAYLOAD_TOO_LARGE', 'The request is larger than max_request_size')
}
