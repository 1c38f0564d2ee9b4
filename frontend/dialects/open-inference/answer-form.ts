import type { WantedOutput } from '../../../common/tensors/message.ts'
import type { Operation } from '../../../common/openai/operations.ts'
import { type AnswerFacts, type AnswerReader, HandlerAnswers, JsonAnswers } from './answers.ts'
import { LlmAnswers } from './llm-answers.ts'

/** How the responses of one request are read: plain data, which a thread can get. */
export interface AnswerForm {
  readonly facts: AnswerFacts
  /** Whether it must be JSON in the protocol's form, as TorchServe's own package has it. */
  readonly isJson?: boolean
  /** Which method of the OpenAI API was called; absent: none. */
  readonly operation?: Operation
  /** The outputs that the client requested; absent: all, or the handler has selected them already. */
  readonly wanted?: readonly WantedOutput[]
}

export function readerOf({ facts, isJson, operation, wanted }: AnswerForm): AnswerReader {
  if (isJson === true) return new JsonAnswers(facts)
  return operation === undefined
    ? new HandlerAnswers(facts, wanted)
    : new LlmAnswers(facts, operation, wanted)
}
