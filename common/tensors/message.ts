import { ServeError } from '../errors.ts'
import { exactJson, parseBody } from '../exact-json.ts'
import { isObject, unlessEmpty } from '../json.ts'
import { asBuffer } from './bytes.ts'
import { tensorFromJson } from './from-json.ts'
import { checkHead, checkParameters, checkSize, invalid, type Parameters, type RawTensor } from './tensor.ts'

/**
 * An Open Inference Protocol request or response in one piece: the length of the head (4 bytes,
 * little-endian), the head as JSON, then the raw tensors. This is the protocol's binary tensor data
 * extension, with the length in the body instead of a header, because the items of a stream have no headers.
 */

/** Content type of a response whose items have this format. */
export const TENSORS_TYPE = 'application/vnd.torchserve-ts.tensors'

/** An output that a client requests. */
export interface WantedOutput {
  readonly name: string
  readonly parameters?: Parameters
}

export interface InferRequest {
  readonly id?: string
  readonly parameters?: Parameters
  readonly inputs: readonly RawTensor[]
  /** Absent: all outputs. */
  readonly outputs?: readonly WantedOutput[]
}

export interface InferResponse {
  readonly id?: string
  readonly modelName?: string
  readonly modelVersion?: string
  readonly parameters?: Parameters
  readonly outputs: readonly RawTensor[]
}

/** Maximum number of tensors, because each costs far more memory than its bytes on the wire. */
const MAX_TENSORS = 1024
const LENGTH_BYTES = 4
const NO_BYTES = Buffer.alloc(0)

export function encodeRequest({ id, parameters, inputs, outputs }: InferRequest): Buffer {
  return encode({ id, parameters, inputs: inputs.map(headOf), outputs }, inputs)
}

export function encodeResponse(response: InferResponse): Buffer {
  const { id, modelName, modelVersion, parameters, outputs } = response
  const head = { model_name: modelName, model_version: modelVersion, id, parameters }
  return encode({ ...head, outputs: outputs.map(headOf) }, outputs)
}

/** @throws ServeError MALFORMED_BODY, INVALID_TENSOR */
export function decodeRequest(message: Uint8Array): InferRequest {
  const { head, raw } = split(message)
  return requestFrom(parseObject(head), raw)
}

/** @throws ServeError MALFORMED_BODY, INVALID_TENSOR */
export function decodeResponse(message: Uint8Array): InferResponse {
  const { head, raw } = split(message)
  return responseFrom(parseObject(head), raw)
}

/** Reads a request from parsed JSON and the raw tensors that follow it. @throws ServeError INVALID_TENSOR */
export function requestFrom(value: Record<string, unknown>, raw: Uint8Array = NO_BYTES): InferRequest {
  const { id, parameters, outputs } = value
  return {
    id: optionalText('id', id),
    parameters: checkParameters(parameters),
    inputs: tensors('inputs', value['inputs'], raw),
    outputs:
      outputs === undefined || outputs === null ? undefined : list('outputs', outputs).map(wantedOutput),
  }
}

/** Reads a response from parsed JSON and the raw tensors that follow it. @throws ServeError INVALID_TENSOR */
export function responseFrom(value: Record<string, unknown>, raw: Uint8Array = NO_BYTES): InferResponse {
  return {
    id: optionalText('id', value['id']),
    modelName: optionalText('model_name', value['model_name']),
    modelVersion: optionalText('model_version', value['model_version']),
    parameters: checkParameters(value['parameters']),
    outputs: tensors('outputs', value['outputs'], raw),
  }
}

/**
 * The outputs that a client requested, in the order of the request; all if it requested none.
 * @throws ServeError INVALID_TENSOR when an output does not exist
 */
export function selectOutputs<T extends readonly RawTensor[]>(
  outputs: T,
  wanted: InferRequest['outputs'],
): T | RawTensor[] {
  if (wanted === undefined) return outputs
  return wanted.map(({ name }) => {
    const output = outputs.find((each) => each.name === name)
    if (output !== undefined) return output
    throw new ServeError('INVALID_TENSOR', `The model has no output ${name.slice(0, 200)}`)
  })
}

/** Parses a JSON object. @throws ServeError MALFORMED_BODY, INVALID_TENSOR */
export function parseObject(json: Uint8Array): Record<string, unknown> {
  const value = parseBody(json)
  if (isObject(value)) return value
  throw new ServeError('INVALID_TENSOR', 'The body must be a JSON object')
}

function encode(head: object, tensors: readonly RawTensor[]): Buffer {
  const json = Buffer.from(exactJson(head))
  const length = Buffer.allocUnsafe(LENGTH_BYTES)
  length.writeUInt32LE(json.byteLength)
  return Buffer.concat([length, json, ...tensors.map(({ data }) => data)])
}

/** The head of a tensor in the binary tensor data extension. */
export function headOf({ name, datatype, shape, parameters, data }: RawTensor): object {
  return { name, datatype, shape, parameters: { ...parameters, binary_data_size: data.byteLength } }
}

function split(message: Uint8Array): { head: Buffer; raw: Buffer } {
  const bytes = asBuffer(message)
  const end = bytes.byteLength < LENGTH_BYTES ? Infinity : LENGTH_BYTES + bytes.readUInt32LE(0)
  if (end > bytes.byteLength) throw new ServeError('MALFORMED_BODY', 'The tensor message is incomplete')
  return { head: bytes.subarray(LENGTH_BYTES, end), raw: bytes.subarray(end) }
}

function tensors(what: string, value: unknown, raw: Uint8Array): RawTensor[] {
  const found = list(what, value)
  let at = 0
  const read = found.map((each): RawTensor => {
    const head = checkHead(each)
    const { binary_data_size: bytes, ...parameters } = head.parameters ?? {}
    if (bytes === undefined) {
      return tensorFromJson(head, (each as Record<string, unknown>)['data'])
    }
    const end = at + Number(bytes)
    if (!Number.isSafeInteger(bytes) || end < at || end > raw.byteLength) {
      throw invalid(head.name, 'binary_data_size does not match the bytes that follow')
    }
    const data = raw.subarray(at, end)
    at = end
    return checkSize({ ...head, parameters: unlessEmpty(parameters), data })
  })
  if (at === raw.byteLength) return read
  throw new ServeError('INVALID_TENSOR', `The body has ${raw.byteLength - at} bytes that belong to no tensor`)
}

function wantedOutput(value: unknown): WantedOutput {
  if (!isObject(value) || typeof value['name'] !== 'string') {
    throw new ServeError('INVALID_TENSOR', 'A requested output must have a name')
  }
  return { name: value['name'], parameters: checkParameters(value['parameters']) }
}

function list(what: string, value: unknown): unknown[] {
  if (!Array.isArray(value)) throw new ServeError('INVALID_TENSOR', `${what} must be a list`)
  if (value.length <= MAX_TENSORS) return value
  throw new ServeError('INVALID_TENSOR', `${what} must not have more than ${MAX_TENSORS} tensors`)
}

function optionalText(what: string, value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value === 'string') return value
  throw new ServeError('INVALID_TENSOR', `${what} must be a string`)
}
