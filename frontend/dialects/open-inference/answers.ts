import { isUtf8 } from 'node:buffer'
import { ServeError } from '../../../common/errors.ts'
import { tryParseJson } from '../../../common/exact-json.ts'
import { isObject } from '../../../common/json.ts'
import { asBuffer, joinElements } from '../../../common/tensors/bytes.ts'
import {
  decodeResponse,
  responseFrom,
  selectOutputs,
  TENSORS_TYPE,
  type InferRequest,
  type InferResponse,
} from '../../../common/tensors/message.ts'
import type { RawTensor } from '../../../common/tensors/tensor.ts'
import type { ReplyHead } from '../../jobs/reply-sink.ts'

/** Defaults for fields that the handler's response lacks. */
export interface AnswerFacts {
  readonly id: string | undefined
  readonly modelName: string
  readonly modelVersion: string
}

/** A complete response. */
export type Answer = InferResponse & { readonly modelName: string; readonly modelVersion: string }

/** Converts what a handler returned to responses, according to how it was called (infer-job.ts). */
export interface AnswerReader<Read = Answer> {
  /**
   * Converts one response, unary or an item of a stream. `body` is not kept.
   * @throws ServeError INVALID_OUTPUT, HANDLER_REJECTED, INVALID_TENSOR
   */
  read(head: ReplyHead, body: Uint8Array): Read
  /** The error of a failed request in this protocol. */
  failure(error: ServeError): ServeError
}

/** For handlers with tensor methods, and for handlers with only `handle`. */
export class HandlerAnswers implements AnswerReader {
  readonly #facts: AnswerFacts
  readonly #wanted: InferRequest['outputs']

  /**
   * `wanted`: the outputs that the client requested; absent: all, or the handler has selected them already.
   */
  constructor(facts: AnswerFacts, wanted?: InferRequest['outputs']) {
    this.#facts = facts
    this.#wanted = wanted
  }

  read(head: ReplyHead, body: Uint8Array): Answer {
    const answer = answerOf(head, body, this.#facts)
    return this.#wanted === undefined
      ? answer
      : { ...answer, outputs: selectOutputs(answer.outputs, this.#wanted) }
  }

  failure(error: ServeError): ServeError {
    return error
  }
}

/** For clients that expect the handler's own JSON in the protocol's format. */
export class JsonAnswers implements AnswerReader {
  readonly #facts: AnswerFacts

  constructor(facts: AnswerFacts) {
    this.#facts = facts
  }

  read(head: ReplyHead, body: Uint8Array): Answer {
    if (head.status >= 400) throw rejected(head, body)
    const value = jsonObject(body)
    if (value !== undefined)
      return complete(
        checked(() => responseFrom(value)),
        this.#facts,
      )
    throw new ServeError(
      'INVALID_OUTPUT',
      'The inference response of the handler is not valid: it must be a JSON object',
    )
  }

  failure(error: ServeError): ServeError {
    return error
  }
}

/** Whether the items of a response are tensor messages. */
export function isNative(head: ReplyHead): boolean {
  return head.contentType === TENSORS_TYPE
}

/**
 * Converts one response of `handle`, unary or an item of a stream. A JSON object with `outputs` is a complete
 * response. Anything else becomes the output `output`, BYTES `[1, 1]`, with content type `str` if it is text.
 * @throws ServeError INVALID_OUTPUT when it is not a valid response, HANDLER_REJECTED when the handler set an
 * error status
 */
function answerOf(head: ReplyHead, body: Uint8Array, facts: AnswerFacts): Answer {
  if (isNative(head))
    return complete(
      checked(() => decodeResponse(body)),
      facts,
    )
  if (head.status >= 400) throw rejected(head, body)
  const value = body[0] === BRACE ? jsonObject(body) : undefined
  if (value !== undefined && Array.isArray(value['outputs'])) {
    return complete(
      checked(() => responseFrom(value)),
      facts,
    )
  }
  return { ...facts, outputs: [textOutput(body)] }
}

/** Converts an error response of `handle`. */
export function rejected({ status }: ReplyHead, body: Uint8Array): ServeError {
  return new ServeError('HANDLER_REJECTED', asBuffer(body).toString().slice(0, 4096), { status })
}

const BRACE = 0x7b
const TEXT = { content_type: 'str' }

function textOutput(body: Uint8Array): RawTensor {
  const parameters = isUtf8(body) ? TEXT : undefined
  return { name: 'output', datatype: 'BYTES', shape: [1, 1], parameters, data: joinElements([body]) }
}

function complete(response: InferResponse, facts: AnswerFacts): Answer {
  return {
    modelName: response.modelName ?? facts.modelName,
    modelVersion: response.modelVersion ?? facts.modelVersion,
    id: response.id ?? facts.id,
    parameters: response.parameters,
    outputs: response.outputs,
  }
}

function jsonObject(body: Uint8Array): Record<string, unknown> | undefined {
  const value = tryParseJson(body)
  return isObject(value) ? value : undefined
}

/** An invalid response is the handler's fault, not the client's. */
function checked(read: () => InferResponse): InferResponse {
  try {
    return read()
  } catch (thrown) {
    const { message } = ServeError.from(thrown)
    throw new ServeError('INVALID_OUTPUT', `The inference response of the handler is not valid: ${message}`)
  }
}
