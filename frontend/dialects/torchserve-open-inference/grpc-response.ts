import type { ReplyHead } from '../../jobs/reply-sink.ts'
import { JsonAnswers } from '../open-inference/answers.ts'
import type { ModelInferRequest, ModelInferResponse } from '../open-inference/grpc-messages.ts'
import { inferResponse as messageOf } from '../open-inference/grpc-response.ts'

/**
 * The handler's JSON as a ModelInferResponse (docs/grpc.md). What it leaves out
 * of id, model_name and model_version comes from the request.
 * @throws ServeError INVALID_OUTPUT when it is none, HANDLER_REJECTED when the handler said an error status
 * with something else
 */
export function inferResponse(
  { id, model_name: modelName = '', model_version: modelVersion = '' }: ModelInferRequest,
  body: Uint8Array,
  head: ReplyHead,
): ModelInferResponse {
  const facts = { id, modelName, modelVersion }
  return messageOf(new JsonAnswers(facts).read(head, body), false)
}
