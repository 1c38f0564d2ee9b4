import { selectOutputs, type WantedOutput } from '../../../common/tensors/message.ts'
import type { Operation } from '../../../common/openai/types.ts'
import { type Answer, type AnswerFacts, type AnswerReader, handlerAnswer } from './answers.ts'
import { llmAnswer, llmFailure } from './llm-answers.ts'

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
  { facts, operation, wanted }: AnswerForm,
  write: (answer: Answer) => Written,
): AnswerReader<Written> {
  const read = operation === undefined ? handlerAnswer : llmAnswer(operation)
  return {
    read: (head, body) => {
      const answer = read(head, body, facts)
      return write({ ...answer, outputs: selectOutputs(answer.outputs, wanted) })
    },
    failure: (error) => (operation === undefined ? error : llmFailure(error)),
  }
}
