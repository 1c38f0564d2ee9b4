/**
 * The public API of `torchserve-ts`, for handler authors.
 *
 * @example
 * ```ts
 * import { BaseHandler, sendIntermediatePredictResponse } from 'torchserve-ts'
 * import type { Context, HandlerRequest } from 'torchserve-ts'
 *
 * export default class Countdown extends BaseHandler {
 *   override async handle(requests: HandlerRequest[], context: Context) {
 *     for (const word of ['three', 'two', 'one'])
 *       await sendIntermediatePredictResponse([word], context.requestIds, 'Intermediate', 200, context)
 *     return ['lift-off']
 *   }
 * }
 * ```
 */
export { brainToFloats, floatsToBrain, floatsToHalf, halfToFloats } from '../common/tensors/datatypes.ts'
export { exactJson } from '../common/exact-json.ts'
export { BaseHandler } from './base-handler.ts'
export type {
  Context,
  ContextProperties,
  Handler,
  HandlerMetrics,
  HandlerRequest,
  HandlerResponse,
  Logger,
  Metric,
  MetricKind,
  RequestIds,
  SequenceHeaders,
  StoppingCriterion,
} from './handler.ts'
export { sendIntermediatePredictResponse } from './intermediate.ts'
export type {
  ChatChunk,
  ChatDelta,
  ChatCompletionRequest,
  ChatMessage,
  Completion,
  CompletionChunk,
  CompletionLogprobs,
  CompletionRequest,
  EmbeddingsRequest,
  EmbeddingsResult,
  ResponseFormat,
  TokenLogprob,
  Tool,
  ToolCallDelta,
  Usage,
} from '../common/openai/types.ts'
export {
  DEFAULT_CHAT_STOPS,
  defaultChatPrompt,
  messageText,
  otherThanText,
} from '../common/openai/default-chat.ts'
export { StopFilter } from '../common/openai/stop-filter.ts'
export { OpenAIRuntime } from '../handlers/openai-provider/handler.ts'
export { OpenAIError } from './openai/error.ts'
export { PredictionException } from './handler-error.ts'
export {
  ArrayCodec,
  Base64Codec,
  DatetimeCodec,
  decodeInput,
  type NumberArray,
  StringCodec,
  toNested,
} from './open-inference/codecs.ts'
export type {
  Datatype,
  InferenceHandler,
  InferenceRequest,
  InferenceResponse,
  InputTensor,
  OutputTensor,
  TensorData,
} from './open-inference/types.ts'
