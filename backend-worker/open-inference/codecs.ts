import { brainToFloats, type Datatype, halfToFloats, NUMERIC } from '../../common/tensors/datatypes.ts'
import { PredictionException } from '../handler-error.ts'
import type { InputTensor, OutputTensor } from './types.ts'

/**
 * MLServer's content types (MLServer's documentation, "Content Types") for handlers. `decodeInput` decodes an
 * input; `encodeOutput` makes an output of shape `[N, 1]`.
 * @throws PredictionException 422 from `decodeInput` when the client's input does not have this type
 */

/** Content type `str`: strings. */
export const StringCodec = {
  contentType: 'str',
  decodeInput: (input: InputTensor): string[] => bytesOf(input).map((element) => element.toString()),
  encodeOutput: (name: string, texts: readonly string[]): OutputTensor => column(name, [...texts], 'str'),
} as const

/** Content type `base64`: bytes, in base64 on the wire. Elements that are not valid base64 pass unchanged. */
export const Base64Codec = {
  contentType: 'base64',
  decodeInput: (input: InputTensor): Uint8Array[] =>
    bytesOf(input).map((element) => {
      const text = element.toString('latin1')
      return isBase64(text) ? Buffer.from(text, 'base64') : element
    }),
  encodeOutput: (name: string, values: readonly Uint8Array[]): OutputTensor =>
    column(
      name,
      values.map((value) => Buffer.from(value).toString('base64')),
      'base64',
    ),
} as const

/** Content type `datetime`: dates in ISO 8601. */
export const DatetimeCodec = {
  contentType: 'datetime',
  decodeInput: (input: InputTensor): Date[] =>
    bytesOf(input).map((element) => {
      const date = new Date(element.toString())
      if (!Number.isNaN(date.getTime())) return date
      throw refusal(input, 'must contain only ISO 8601 dates')
    }),
  encodeOutput: (name: string, dates: readonly Date[]): OutputTensor =>
    column(
      name,
      dates.map((date) => date.toISOString()),
      'datetime',
    ),
} as const

/** Numbers with a shape, like a NumPy array. */
export interface NumberArray {
  readonly shape: readonly number[]
  /** FP16 and BF16 as 32-bit floats. */
  readonly data: Exclude<InputTensor['data'], Uint8Array[]>
}

/** Content type `np`: numbers. A list with one dimension is encoded as `[N, 1]`, as in MLServer. */
export const ArrayCodec = {
  contentType: 'np',
  decodeInput: (input: InputTensor): NumberArray => {
    const { datatype, shape, data } = input
    if (Array.isArray(data)) throw refusal(input, 'must contain numbers')
    if (datatype === 'FP16') return { shape, data: halfToFloats(data as Uint16Array) }
    return { shape, data: datatype === 'BF16' ? brainToFloats(data as Uint16Array) : data }
  },
  encodeOutput: (
    name: string,
    array: NumberArray | NumberArray['data'] | readonly number[],
  ): OutputTensor => {
    const { shape, data } = 'shape' in array ? array : { shape: [array.length], data: array }
    const typed = ArrayBuffer.isView(data) ? data : Float64Array.from(data)
    const written = shape.length === 1 ? [shape[0]!, 1] : shape
    return {
      name,
      datatype: datatypeOf(typed),
      shape: written,
      data: typed,
      parameters: { content_type: 'np' },
    }
  },
} as const

/**
 * Decodes an input by its `content_type`. Without one, BYTES become strings and all other datatypes numbers.
 * With an unknown one, returns the data unchanged.
 */
export function decodeInput(input: InputTensor): unknown {
  const { content_type: named = input.datatype === 'BYTES' ? 'str' : 'np' } = input.parameters
  const codec = [StringCodec, Base64Codec, DatetimeCodec, ArrayCodec].find(
    ({ contentType }) => contentType === named,
  )
  return codec === undefined ? input.data : codec.decodeInput(input)
}

/** The numbers of a tensor as nested lists, according to its shape. Bigints stay bigints. */
export function toNested({ shape, data }: NumberArray): unknown {
  let values: unknown[] = Array.from(data as ArrayLike<unknown>)
  for (let i = shape.length - 1; i > 0; i -= 1) {
    const size = shape[i]!
    const rows = size === 0 ? 0 : values.length / size
    values = Array.from({ length: rows }, (_, row) => values.slice(row * size, (row + 1) * size))
  }
  return shape.length === 0 ? values[0] : values
}

function column(name: string, data: string[], content_type: string): OutputTensor {
  return { name, datatype: 'BYTES', shape: [data.length, 1], data, parameters: { content_type } }
}

function bytesOf(input: InputTensor): Buffer[] {
  if (Array.isArray(input.data)) return input.data as Buffer[]
  throw refusal(input, 'must have the datatype BYTES')
}

function isBase64(text: string): boolean {
  return text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text)
}

function datatypeOf(data: ArrayBufferView): Datatype {
  for (const [name, { array }] of NUMERIC) {
    if (name !== 'BOOL' && name !== 'FP16' && name !== 'BF16' && data instanceof array)
      return name as Datatype
  }
  throw new TypeError(`${data.constructor.name} is not supported as tensor data`)
}

function refusal({ name }: InputTensor, why: string): PredictionException {
  return new PredictionException(`Input ${name.slice(0, 200)} ${why}`, 422)
}
