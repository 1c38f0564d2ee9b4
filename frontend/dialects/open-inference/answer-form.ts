import type { WantedOutput } from '../../../common/tensors/message.ts'
import type { Operation } from '../../../common/openai/operations.ts'
import { type Answer, type AnswerFacts, type AnswerReader, HandlerAnswers } from './answers.ts'
import { LlmAnswers } from './llm-answers.ts'

/** How the responses of one request are read. */
export interface AnswerForm {
  readonly facts: AnswerFacts
  /** Which method of the OpenAI API was called; absent: none. */
  readonly operation?: Operation
  /** The outputs that the client requested; absent: all, or the handler has selected them already. */
  readonly wanted?: readonly WantedOutput[]
}

/** Reads the responses of one request. `write` makes of each what the client's protocol sends. */
export function answersAs<Written>(
  form: AnswerForm,
  write: (answer: Answer) => Written,
): AnswerReader<Written> {
  const reader = readerOf(form)
  return {
    read: (head, body) => write(reader.read(head, body)),
    failure: (error) => reader.failure(error),
  }
}

function readerOf({ facts, operation, wanted }: AnswerForm): AnswerReader {
  return operation === undefined
    ? new HandlerAnswers(facts, wanted)
    : new LlmAnswers(facts, operation, wanted)
}
