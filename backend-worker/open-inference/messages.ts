import { ServeError } from '../../common/errors.ts'
import { isObject } from '../../common/json.ts'
import { encodeResponse, type InferRequest, selectOutputs } from '../../common/tensors/message.ts'
import { checkHead, type RawTensor } from '../../common/tensors/tensor.ts'
import { dataOf, rawOf } from '../../common/tensors/typed.ts'
import type { InferenceRequest, InferenceResponse } from './types.ts'

/** A request as the handler gets it. */
export function toHandler({ id, parameters = {}, inputs, outputs }: InferRequest): InferenceRequest {
  const tensors = inputs.map((input) => {
    const { name, datatype, shape } = input
    return { name, datatype, shape, data: dataOf(input), parameters: input.parameters ?? {} }
  })
  return { id, parameters, inputs: tensors, outputs }
}

/** A handler's response with raw outputs. */
export interface RawResponse extends Omit<InferenceResponse, 'outputs'> {
  outputs: RawTensor[]
}

const NOT_VALID = 'The inference response of the handler is not valid'

/**
 * Validates the handler's response and removes outputs that the client did not request.
 * @throws ServeError INVALID_OUTPUT when it is not a response, INVALID_TENSOR when a requested output does
 * not exist
 */
export function fromHandler(response: unknown, request: InferRequest): RawResponse {
  if (!isObject(response) || !Array.isArray(response['outputs'])) {
    throw new ServeError('INVALID_OUTPUT', `${NOT_VALID}: it must have outputs`, {
      detail:
        `${NOT_VALID}: predict must return { outputs: [...] }, as predict and predictStream are for tensors. For a ` +
        'list with one item per request, call the method handle.',
    })
  }
  const answered = response as unknown as InferenceResponse
  return { ...answered, outputs: selectOutputs(answered.outputs.map(rawOutput), request.outputs) }
}

/** Encodes the response for the frontend. */
export function encodeRaw({ id, model_name, model_version, parameters, outputs }: RawResponse): Buffer {
  return encodeResponse({ id, modelName: model_name, modelVersion: model_version, parameters, outputs })
}

function rawOutput(output: unknown): RawTensor {
  try {
    return rawOf(checkHead(output), (output as { data?: unknown }).data)
  } catch (thrown) {
    const { message } = ServeError.from(thrown)
    throw new ServeError('INVALID_OUTPUT', `${NOT_VALID}: ${message}`)
  }
}
