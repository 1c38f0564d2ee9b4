import { readRequest } from '../../../common/openai/request.ts'
import { type Operation, OPERATIONS } from '../../../common/openai/types.ts'
import { parseForm, parseMultipart } from '../../../frontend/edge/http/forms.ts'
import { targetOf } from '../../../frontend/edge/http/request-head.ts'
import { generateRequest, isGenerate } from '../../../frontend/dialects/open-inference/rest-generate.ts'
import { splitBody, wireRequest } from '../../../frontend/dialects/open-inference/rest-wire.ts'
import { decodeRequest, encodeRequest } from '../../../common/tensors/message.ts'
import { tensorJson } from '../../../common/tensors/to-json.ts'
import type { Target } from '../target.ts'

/** The default of max_request_elements. */
const MAX_ELEMENTS = 250_000
const BOUNDARY = 'b0unda6y'
const file = (name: string, content: string, more = ''): string =>
  `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"; filename="${name}.txt"\r\n${more}\r\n${content}\r\n`
const field = (name: string, content: string): string =>
  `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${content}\r\n`

/** The first line is the boundary. */
export const multipart: Target = {
  name: 'multipart',
  seeds: () => [
    `${BOUNDARY}\n${field('a', '1')}--${BOUNDARY}--\r\n`,
    `${BOUNDARY}\n${file('data', 'x'.repeat(100), 'Content-Type: image/png\r\n')}${field('b', '')}--${BOUNDARY}--\r\n`,
    `${BOUNDARY}\n${file('data', 'y', 'Content-Transfer-Encoding: base64\r\n')}`,
    `${BOUNDARY}\n--${BOUNDARY}\r\nContent-Disposition: form-data; name*=utf-8''%e2%82%ac\r\nContent-Type: text/plain; charset=utf-16\r\n\r\nz\r\n--${BOUNDARY}--`,
  ],
  words: [
    `--${BOUNDARY}`,
    `--${BOUNDARY}--`,
    '\r\n\r\n',
    'filename=',
    'name=',
    'charset=',
    'Content-Type: ',
    '"',
    ';',
  ],
  run: (input) => {
    const end = Math.max(0, input.indexOf('\n'))
    const type = `multipart/form-data; boundary=${input.toString('latin1', 0, end)}`
    parseMultipart(input.subarray(end + 1), type)
  },
}

export const form: Target = {
  name: 'form',
  seeds: () => ['a=1&b=2', 'data=%41+%zz&x', '&&=&'],
  run: (input) => void parseForm(input),
}

export const requestTarget: Target = {
  name: 'request-target',
  seeds: () => ['/predictions/m/1.0?a=b', 'http://host/v2/models/m/infer', '/%70redictions//m/', '*'],
  run: (input) => void targetOf(input.toString('latin1')),
}

/** The first line: the operation. */
export const openai: Target = {
  name: 'openai',
  seeds: () => [
    'chat\n{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,"n":2,"stop":["a"]}',
    'chat\n{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"x"}]}],"tools":[{"type":"function","function":{"name":"f","parameters":{}}}],"tool_choice":"auto","logit_bias":{"1":2},"response_format":{"type":"json_object"},"stream_options":{"include_usage":true}}',
    'completions\n{"model":"m","prompt":["a","b"],"max_tokens":5,"temperature":0.5,"seed":1,"logprobs":2,"echo":true}',
    'embeddings\n{"model":"m","input":["a",[1,2]],"encoding_format":"base64","dimensions":3}',
  ],
  words: ['"model"', '"messages"', '"stream"', '"stop"', '"tools"', '"n"', '"content"', '[[[[[[[[', '{"a":'],
  run: (input) => {
    const end = Math.max(0, input.indexOf('\n'))
    const name = input.toString('latin1', 0, end)
    const operations = Object.keys(OPERATIONS) as Operation[]
    readRequest(operations.find((each) => each === name) ?? 'chat', input.subarray(end + 1), undefined)
  },
}

const DECLARED = [
  { name: 'stream', datatype: 'BOOL', shape: [1] },
  { name: 'text_input', datatype: 'BYTES', shape: [-1] },
]

/** The first line: the length of the JSON, or nothing. */
export const tensors: Target = {
  name: 'tensors',
  seeds: () => [
    '\n{"id":"1","inputs":[{"name":"a","shape":[2],"datatype":"FP32","data":[1,2.5]}],"outputs":[{"name":"o"}]}',
    '\n{"inputs":[{"name":"a","shape":[1,2],"datatype":"BYTES","data":[["x","y"]]},{"name":"b","shape":[1],"datatype":"INT64","data":[9007199254740993]}]}',
    '90\n{"inputs":[{"name":"a","shape":[2],"datatype":"INT16","parameters":{"binary_data_size":4}}]}\x01\x00\x02\x00',
    '91\n{"inputs":[{"name":"a","shape":[1],"datatype":"BYTES","parameters":{"binary_data_size":5}}]}\x01\x00\x00\x00x',
    '\n{"text_input":"x","parameters":{"stream":true},"id":"7"}',
    '\n{"inputs":[{"name":"h","shape":[2],"datatype":"FP16","data":[1,2]},{"name":"t","shape":[1],"datatype":"BOOL","data":[true]}],"parameters":{"a":1}}',
  ],
  words: [
    '"shape"',
    '"datatype"',
    '"data"',
    'BYTES',
    'INT64',
    'UINT64',
    'FP16',
    'BF16',
    '"binary_data_size"',
    '"parameters"',
    '[[[[',
  ],
  run: (input) => {
    const end = Math.max(0, input.indexOf('\n'))
    const length = input.toString('latin1', 0, end)
    const body = splitBody(input.subarray(end + 1), length === '' ? undefined : length, MAX_ELEMENTS)
    const { infer } = isGenerate(body.value) ? { infer: undefined } : wireRequest(body)
    if (infer === undefined) return void generateRequest(body.value, DECLARED)
    for (const tensor of decodeRequest(encodeRequest(infer)).inputs) void tensorJson(tensor)
  },
}

/** The message of tensors between frontend and worker. */
export const tensorMessage: Target = {
  name: 'tensor-message',
  seeds: () => [
    encodeRequest({ inputs: [{ name: 'a', datatype: 'INT8', shape: [2], data: Buffer.from([1, 2]) }] }),
    encodeRequest({
      id: 'x',
      parameters: { p: 1 },
      inputs: [{ name: 'b', datatype: 'BYTES', shape: [1], data: Buffer.from([1, 0, 0, 0, 65]) }],
      outputs: [{ name: 'o' }],
    }),
  ],
  run: (input) => void decodeRequest(input),
}
