import type { ReplyHead } from '../../jobs/reply-sink.ts'
import { MessageAnswers } from '../open-inference/grpc-answers.ts'
import type { ModelInferRequest, ModelInferResponse } from '../open-inference/grpc-messages.ts'

/**
 * The handler's JSON as a ModelInferResponse (docs/grpc.md), large ones read in a thread. What it leaves out
 * of id, model_name and model_version comes from the request.
 * @throws ServeError INVALID_OUTPUT when it is none, HANDLER_REJECTED when the handler said an error status
 * with something else; a promise rejects with these, and those of the thread
 */
export function inferResponse(
  { id, model_name: modelName = '', model_version: modelVersion = '' }: ModelInferRequest,
  body: Uint8Array,
  head: ReplyHead,
): ModelInferResponse | Promise<ModelInferResponse> {
  const facts = { id, modelName, modelVersion }
  return new MessageAnswers({ facts, isJson: true }, false).read(head, body)
}
