import { isUtf8 } from 'node:buffer'
import { ServeError } from '../../../common/errors.ts'
import { tryParseJson } from '../../../common/exact-json.ts'
import { isObject } from '../../../common/json.ts'
import { asBuffer, joinElements } from '../../../common/tensors/bytes.ts'
import {
  decodeResponse,
  responseFrom,
  TENSORS_TYPE,
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

/** Reads one response, unary or an item of a stream; see AnswerReader. */
export type ReadAnswer = (head: ReplyHead, body: Uint8Array, facts: AnswerFacts) => Answer

/** For clients that expect the handler's own JSON in the protocol's format. */
export const jsonAnswer: ReadAnswer = (head, body, facts) => {
  if (head.status >= 400) throw rejected(head, body)
  const value = jsonObject(body)
  if (value !== undefined) return complete(() => responseFrom(value), facts)
  throw new ServeError('INVALID_OUTPUT', `${NOT_VALID}: it must be a JSON object`)
}

const NOT_VALID = 'The inference response of the handler is not valid'

/** Whether the items of a response are tensor messages. */
export function isNative(head: ReplyHead): boolean {
  return head.contentType === TENSORS_TYPE
}

/**
 * For handlers with tensor methods, and for handlers with only `handle`. A JSON object with `outputs` is a
 * complete response. Anything else becomes the output `output`, BYTES `[1, 1]`, with content type `str` if it
 * is text.
 */
export const handlerAnswer: ReadAnswer = (head, body, facts) => {
  if (isNative(head)) return complete(() => decodeResponse(body), facts)
  if (head.status >= 400) throw rejected(head, body)
  const value = body[0] === BRACE ? jsonObject(body) : undefined
  if (value !== undefined && Array.isArray(value['outputs']))
    return complete(() => responseFrom(value), facts)
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

/** An invalid response is the handler's fault, not the client's. */
function complete(read: () => InferResponse, facts: AnswerFacts): Answer {
  try {
    const { modelName, modelVersion, id, parameters, outputs } = read()
    return {
      modelName: modelName ?? facts.modelName,
      modelVersion: modelVersion ?? facts.modelVersion,
      id: id ?? facts.id,
      parameters,
      outputs,
    }
  } catch (thrown) {
    throw new ServeError('INVALID_OUTPUT', `${NOT_VALID}: ${ServeError.from(thrown).message}`)
  }
}

function jsonObject(body: Uint8Array): Record<string, unknown> | undefined {
  const value = tryParseJson(body)
  return isObject(value) ? value : undefined
}
