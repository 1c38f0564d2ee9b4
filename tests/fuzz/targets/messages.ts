import { Metadata } from '@grpc/grpc-js'
import { torchserveInferenceGrpc } from '../../../frontend/dialects/torchserve/grpc.ts'
import { jobRequest, type PredictionsRequest } from '../../../frontend/dialects/torchserve/grpc-request.ts'
import {
  inferRequest,
  type ModelInferRequest,
} from '../../../frontend/dialects/open-inference/grpc-messages.ts'
import { withUndecodedContents } from '../../../frontend/dialects/open-inference/grpc.ts'
import { loadService } from '../../../frontend/edge/grpc/definitions.ts'
import { parseMetricLine } from '../../../frontend/observe/metrics/metric-line.ts'
import type { Target } from '../target.ts'

const CALL = {
  metadata: new Metadata(),
  deadline: undefined,
  sender: { address: '127.0.0.1', keyName: undefined, identity: undefined },
}

const torchserve = torchserveInferenceGrpc.facts('inference').definition.definition['Predictions']!
const written = loadService('inference/mlserver.proto', 'inference.GRPCInferenceService')
const v2 = written.definition['ModelInfer']!
/** As the server reads it: with the contents of tensors as bytes. */
const read = withUndecodedContents(
  loadService('inference/mlserver.proto', 'inference.GRPCInferenceService', {
    decode: { arrays: true, longs: String },
  }),
).definition['ModelInfer']!
const MAX_RAW_BYTES = 1_000_000

/** A message that cannot be decoded fails its call in grpc-js; all that matters is that it ends. */
function decoded(decode: (input: Buffer) => unknown, input: Buffer): unknown {
  try {
    return decode(input)
  } catch (error) {
    if (error instanceof RangeError && error.message.includes('call stack')) throw error
    return undefined
  }
}

export const predictions: Target = {
  name: 'grpc-predictions',
  seeds: () => [
    torchserve.requestSerialize({ model_name: 'm', input: { data: Buffer.from('x') } }),
    torchserve.requestSerialize({
      model_name: 'm',
      model_version: '1',
      input: { a: Buffer.from('1'), b: Buffer.alloc(9) },
    }),
    torchserve.requestSerialize({ model_name: 'm', input: {}, sequence_id: 's' }),
  ],
  run: (input) => {
    const message = decoded(torchserve.requestDeserialize, input)
    if (message !== undefined) jobRequest(message as PredictionsRequest, CALL)
  },
}

const contents = { fp32_contents: [1, 2] }

export const modelInfer: Target = {
  name: 'grpc-model-infer',
  seeds: () => [
    v2.requestSerialize({ model_name: 'm', inputs: [{ name: 'a', datatype: 'FP32', shape: [2], contents }] }),
    v2.requestSerialize({
      model_name: 'm',
      id: '1',
      parameters: { p: { int64_param: 3 }, q: { string_param: 'x' } },
      inputs: [{ name: 'a', datatype: 'BYTES', shape: [1] }],
      raw_input_contents: [Buffer.from([1, 0, 0, 0, 65])],
      outputs: [{ name: 'o' }],
    }),
    v2.requestSerialize({
      model_name: 'm',
      inputs: [
        { name: 'a', datatype: 'INT64', shape: [1], contents: { int64_contents: ['9007199254740993'] } },
      ],
    }),
  ],
  run: (input) => {
    const message = decoded(read.requestDeserialize, input)
    if (message !== undefined) inferRequest(message as ModelInferRequest, MAX_RAW_BYTES)
  },
}

/** What Python handlers print. */
export const metricLine: Target = {
  name: 'metric-line',
  seeds: () => [
    'PredictionTime.Milliseconds:5.1|#ModelName:m,Level:Model|#type:GAUGE|#hostname:h,1650953744320,request-id',
    '[METRICS]Count.Count:1|#a:b|#type:COUNTER|#hostname:h,1650953744',
  ],
  words: ['|#', '#type:', '#hostname:', ':', ',', 'constructor'],
  run: (input) => void parseMetricLine(input.toString()),
}
