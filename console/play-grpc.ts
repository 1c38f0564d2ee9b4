import type { PlayModel } from './play-apis.ts'

/** How the same request is made over gRPC. */
export interface GrpcWay {
  /** The listeners that have it, as the server names them; the first that is open is asked. */
  readonly listeners: readonly string[]
  /** `package.Service/Method` */
  readonly method: string
  /**
   * The message in protobuf's JSON. @throws Error a sentence without words of the body: why it cannot be one
   */
  message(model: PlayModel, body: string): object
}

const OPEN_INFERENCE = ['Open Inference gRPC API', 'Open Inference gRPC API (Triton)']
const V2 = 'inference.GRPCInferenceService'

/** TorchServe's stream of predictions. The data come last in the JSON of its message. */
export const PREDICTIONS: GrpcWay = {
  listeners: ['Inference gRPC API'],
  method: 'org.pytorch.serve.grpc.inference.InferenceAPIsService/StreamPredictions',
  message: (model, body) => ({ ...asked(model), input: { data: base64(body) } }),
}

export const MODEL_INFER: GrpcWay = {
  listeners: OPEN_INFERENCE,
  method: `${V2}/ModelInfer`,
  message: (model, body) => {
    const { id, inputs, outputs, parameters } = fields(body)
    if (!Array.isArray(inputs)) throw new Error('The body must have a list of inputs.')
    return {
      ...asked(model),
      ...textField('id', id),
      ...parametersField(parameters),
      inputs: inputs.map((each) => tensor(record(each))),
      ...(Array.isArray(outputs) && { outputs: outputs.map((each) => output(record(each))) }),
    }
  },
}

/** As the server reads a body of generate_stream: fields are inputs where the model declares them. */
export const GENERATE_STREAM: GrpcWay = {
  listeners: OPEN_INFERENCE,
  method: `${V2}/ModelStreamInfer`,
  message: (model, body) => {
    const { id, text_input: text, parameters = {}, ...others } = fields(body)
    if (typeof text !== 'string') throw new Error('text_input must be a string.')
    const given = Object.entries({ ...record(parameters), ...others })
    const declared = new Map(model.inputs.map(({ name, datatype }) => [name, datatype]))
    const inputs = given.filter(([name]) => declared.has(name))
    return {
      ...asked(model),
      ...textField('id', id),
      ...parametersField(Object.fromEntries(given.filter(([name]) => !declared.has(name)))),
      inputs: [
        tensor({
          name: 'text_input',
          datatype: 'BYTES',
          shape: [1],
          parameters: { content_type: 'str' },
          data: [text],
        }),
        ...inputs.map(([name, value]) => {
          const data: unknown[] = Array.isArray(value) ? value : [value]
          return tensor({ name, datatype: declared.get(name), shape: [data.length], data })
        }),
      ],
    }
  },
}

type Fields = Readonly<Record<string, unknown>>

/** The field of InferTensorContents for each datatype, and how it writes an element. */
const CONTENTS: ReadonlyMap<unknown, readonly [field: string, written: (element: unknown) => unknown]> =
  new Map([
    ['BOOL', ['boolContents', bool]],
    ['INT8', ['intContents', integer]],
    ['INT16', ['intContents', integer]],
    ['INT32', ['intContents', integer]],
    ['INT64', ['int64Contents', integer]],
    ['UINT8', ['uintContents', integer]],
    ['UINT16', ['uintContents', integer]],
    ['UINT32', ['uintContents', integer]],
    ['UINT64', ['uint64Contents', integer]],
    ['FP32', ['fp32Contents', float]],
    ['FP64', ['fp64Contents', float]],
    ['BYTES', ['bytesContents', bytes]],
  ])

function asked({ name, version }: PlayModel): object {
  return { modelName: name, ...(version !== undefined && { modelVersion: version }) }
}

function tensor({ name, datatype, shape, parameters, data }: Fields): object {
  const contents = CONTENTS.get(datatype)
  if (contents === undefined) throw new Error('An input has a datatype that the JSON of gRPC cannot say.')
  if (!Array.isArray(shape) || !Array.isArray(data)) throw new Error('Each input must have a shape and data.')
  const [field, written] = contents
  const elements = (data as unknown[]).flat(Infinity).map(written)
  return {
    ...textField('name', name),
    datatype,
    shape: (shape as unknown[]).map(integer),
    ...parametersField(parameters),
    contents: Object.fromEntries([[field, elements]]),
  }
}

function output({ name, parameters }: Fields): object {
  return { ...textField('name', name), ...parametersField(parameters) }
}

function textField(key: 'id' | 'name', value: unknown): object {
  if (value === undefined) return {}
  if (typeof value !== 'string') throw new Error('Names and ids must be strings.')
  return Object.fromEntries([[key, value]])
}

/** Lists and objects are JSON texts over gRPC. */
function parametersField(parameters: unknown): object {
  const entries = Object.entries(parameters === undefined ? {} : record(parameters))
  if (entries.length === 0) return {}
  return { parameters: Object.fromEntries(entries.map(([name, value]) => [name, parameter(value)])) }
}

function parameter(value: unknown): object {
  if (typeof value === 'boolean') return { boolParam: value }
  if (typeof value === 'string') return { stringParam: value }
  if (typeof value !== 'number') return { stringParam: JSON.stringify(value) }
  return Number.isInteger(value) ? { int64Param: integer(value) } : { doubleParam: value }
}

function bool(element: unknown): boolean {
  if (element === true || element === 1) return true
  if (element === false || element === 0) return false
  throw new Error('BOOL elements must be true or false.')
}

/** Texts keep all digits; a number that was read from JSON may have lost some. */
function integer(element: unknown): number | string {
  if (typeof element === 'string' && /^-?\d+$/.test(element)) return element
  if (typeof element === 'number' && Number.isSafeInteger(element)) return element
  throw new Error('Integers must be whole, and texts beyond 9007199254740991.')
}

function float(element: unknown): number | string {
  if (element === null) return 'NaN'
  if (typeof element === 'number') return element
  throw new Error('FP32 and FP64 elements must be numbers.')
}

function bytes(element: unknown): string {
  if (typeof element === 'string') return base64(element)
  throw new Error('BYTES elements must be strings.')
}

function base64(text: string): string {
  return btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(''))
}

function fields(body: string): Fields {
  try {
    return record(JSON.parse(body))
  } catch {
    throw new Error('The body must be a JSON object.')
  }
}

function record(value: unknown): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error('The body must have objects where the protocol has them.')
  return value as Fields
}
