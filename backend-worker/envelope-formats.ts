import { ServeError } from '../common/errors.ts'
import { exactJson } from '../common/exact-json.ts'
import { isObject } from '../common/json.ts'
import { parseClientJson } from './input.ts'
import type { Context, HandlerResponse } from './handler.ts'
import { readShape, resolveShape } from '../common/tensors/tensor.ts'

/** One unpacked request. */
export interface Opened {
  /** The rows that the handler gets in place of the request. */
  readonly rows: readonly unknown[]
  /** Builds the response from the outputs for the rows. */
  close(outputs: readonly unknown[]): HandlerResponse
}

/**
 * Unpacks one request of a batch.
 * @param content the value of its part `data`, else `body`, else all its parts
 * @throws ServeError INVALID_ARGUMENT when the content does not have the format of the envelope
 */
export type Open = (content: unknown, context: Context, index: number) => Opened

/** Passes the content on unchanged. */
export const body: Open = (content) => ({ rows: [content], close: ([output]) => output })

/** `{"instances": [...]}` -> `{"predictions": [...]}`. `{"b64": "..."}` stands for bytes. */
export const json: Open = (content) => ({
  rows: instances(content).map(withBytes),
  close: (outputs) => exactJson({ predictions: outputs }),
})

/** KServe V1: `{"instances": [...]}` -> `{"predictions": [...]}`, or `explanations` from /explanations. */
export const kserve: Open = (content, context) => ({
  rows: instances(content),
  close: (outputs) => ({ [context.explain ? 'explanations' : 'predictions']: outputs }),
})

/** @throws ServeError INVALID_ARGUMENT when it is not a JSON object */
export function jsonObject(content: unknown): Readonly<Record<string, unknown>> {
  let value = content
  if (typeof value === 'string' || Buffer.isBuffer(value)) {
    try {
      value = parseClientJson(Buffer.from(value))
    } catch (thrown) {
      if (thrown instanceof ServeError) throw thrown
      throw malformed(`The request is not valid JSON: ${(thrown as Error).message.slice(0, 200)}`, thrown)
    }
  }
  if (isObject(value)) return value
  throw malformed('The request must be a JSON object')
}

export function malformed(message: string, cause?: unknown): ServeError {
  return new ServeError('INVALID_ARGUMENT', message, { cause })
}

function instances(content: unknown): unknown[] {
  const list = jsonObject(content)['instances']
  if (Array.isArray(list)) return list as unknown[]
  throw malformed('The request must have a list "instances"')
}

function withBytes(row: unknown): unknown {
  if (!isObject(row)) return row
  return (
    bytesOf(row) ?? Object.fromEntries(Object.entries(row).map(([key, cell]) => [key, bytesOf(cell) ?? cell]))
  )
}

function bytesOf(value: unknown): Buffer | undefined {
  if (!isObject(value) || typeof value['b64'] !== 'string' || Object.keys(value).length !== 1)
    return undefined
  return Buffer.from(value['b64'], 'base64')
}

/**
 * A tensor as the handler gets it: `data` is nested according to `shape`; a single BYTES element has no list
 * around it.
 */
interface Input {
  readonly name: string
  readonly shape: readonly number[]
  readonly datatype: string
  readonly data: unknown
}

interface Output {
  readonly name: string
  readonly datatype: string
  readonly data: readonly unknown[]
  readonly shape: readonly number[]
}

const MAX_DIMENSIONS = 32

const DATATYPES: readonly (readonly [new (length: number) => ArrayBufferView, string])[] = [
  [Uint8Array, 'UINT8'],
  [Uint16Array, 'UINT16'],
  [Uint32Array, 'UINT32'],
  [BigUint64Array, 'UINT64'],
  [Int8Array, 'INT8'],
  [Int16Array, 'INT16'],
  [Int32Array, 'INT32'],
  [BigInt64Array, 'INT64'],
  [Float32Array, 'FP32'],
  [Float64Array, 'FP64'],
]

/**
 * KServe V2: `{"id"?, "inputs": [...]}` -> `{"id", "model_name", "model_version", "outputs": [...]}`. Each
 * input is a row.
 */
export const kserveV2: Open = (content, context, index) => {
  const { id, inputs } = jsonObject(content)
  if (!Array.isArray(inputs)) throw malformed('The request must have a list "inputs"')
  const rows = inputs.map(readInput)
  return {
    rows,
    close: (outputs) => ({
      id: typeof id === 'string' && id.trim() !== '' ? id : context.requestIds[index],
      model_name: context.modelName,
      model_version: context.modelVersion,
      outputs: outputs.map((output, i) => toOutput(rows[i]?.name ?? `output-${i}`, output)),
    }),
  }
}

function readInput(input: unknown): Input {
  if (!isObject(input)) throw malformed('An input must be a JSON object')
  const { name, datatype, data } = input
  const sizes = readShape(input['shape'])
  if (typeof name !== 'string' || typeof datatype !== 'string' || sizes === undefined || !Array.isArray(data))
    throw malformed('An input must have "name", "shape", "datatype" and "data"')
  const flat: unknown[] = data.flat(MAX_DIMENSIONS)
  const shape = resolveShape(sizes, flat.length)
  if (flat.some(Array.isArray) || shape === undefined)
    throw malformed(`The data of the input "${name}" must match its shape`)
  // TorchServe's handlers expect a single string or image without a list around it.
  const single = datatype === 'BYTES' && flat.length === 1
  return { ...input, name, shape, datatype, data: single ? flat[0] : nest(flat, shape) }
}

/** A list without elements is empty, whatever its number of dimensions. */
function nest(flat: readonly unknown[], [size, ...rest]: readonly number[]): unknown {
  if (size === undefined) return flat[0]
  if (rest.length === 0 || flat.length === 0) return flat
  const step = flat.length / size
  return Array.from({ length: size }, (_, i) => nest(flat.slice(i * step, (i + 1) * step), rest))
}

function toOutput(name: string, output: unknown): Output {
  const data: unknown[] = []
  const typed = flatten(output, data)
  return { name, datatype: typed ?? datatypeOf(data), data, shape: [data.length] }
}

/** @returns the datatype of the last typed array in it, if any */
function flatten(value: unknown, into: unknown[]): string | undefined {
  if (Array.isArray(value)) {
    let datatype: string | undefined
    for (const item of value) datatype = flatten(item, into) ?? datatype
    return datatype
  }
  const known = DATATYPES.find(([type]) => value instanceof type)
  if (known === undefined) into.push(value)
  else for (const element of value as Iterable<number | bigint>) into.push(element)
  return known?.[1]
}

function datatypeOf(data: readonly unknown[]): string {
  if (data.every((element) => typeof element === 'boolean')) return 'BOOL'
  if (data.every((element) => typeof element === 'number' || typeof element === 'bigint'))
    return data.every((element) => typeof element === 'bigint' || Number.isInteger(element))
      ? 'INT64'
      : 'FP64'
  return 'BYTES'
}
