import { ServeError } from '../../../common/errors.ts'
import { isObject, parseJson } from '../../../common/json.ts'
import { asBuffer, joinElements } from '../../../common/tensors/bytes.ts'
import type { RawTensor } from '../../../common/tensors/tensor.ts'
import type { Operation } from '../../../common/openai/types.ts'
import type { ReadAnswer } from './answers.ts'

/**
 * Converts responses of the OpenAI API to tensors (docs/open-inference.md): role, content and type, `[1, 1]`
 * (one row per choice), and `output_all` with the complete JSON, which Seldon passes on to OpenAI clients.
 * Embeddings become numbers, one row per input.
 */
export function llmAnswer(operation: Operation): ReadAnswer {
  const outputsOf = operation === 'embeddings' ? embeddingOutput : textOutputs
  return (_head, body, facts) => ({ ...facts, outputs: outputsOf(objectOf(body), body) })
}

/** With a 400, Seldon's proxy would load the model again and repeat the request. */
export function llmFailure(error: ServeError): ServeError {
  if (error.code !== 'HANDLER_REJECTED' || error.status !== 400) return error
  return new ServeError(error.code, error.message, { status: 422, detail: error.detail, cause: error })
}

interface Choice {
  message?: unknown
  delta?: unknown
  text?: unknown
}

function textOutputs(answer: Record<string, unknown>, body: Uint8Array): RawTensor[] {
  const choices = Array.isArray(answer['choices']) ? (answer['choices'] as Choice[]) : []
  const said = choices.length === 0 ? [{}] : choices.map(messageOf)
  const calls = said.map(({ tool_calls: list }) => (Array.isArray(list) ? callsText(list) : ''))
  return [
    texts(
      'role',
      said.map(({ role }) => textOr(role, 'assistant')),
    ),
    texts(
      'content',
      said.map(({ content }) => textOr(content, '')),
    ),
    texts(
      'type',
      said.map(() => 'text'),
    ),
    ...(calls.every((call) => call === '') ? [] : [texts('tool_calls', calls)]),
    texts('output_all', [asBuffer(body)]),
  ]
}

/** The message or delta of a chat, the text of a completion. */
function messageOf({ message, delta, text }: Choice): Record<string, unknown> {
  const said = message ?? delta
  return isObject(said) ? said : { content: text }
}

/** In the format of requests: a JSON list of JSON strings. */
function callsText(calls: readonly unknown[]): string {
  return JSON.stringify(calls.map((call) => JSON.stringify(call)))
}

function textOr(value: unknown, otherwise: string): string {
  return typeof value === 'string' ? value : otherwise
}

function texts(name: string, rows: readonly (string | Buffer)[]): RawTensor {
  return {
    name,
    datatype: 'BYTES',
    shape: [rows.length, 1],
    parameters: { content_type: 'str' },
    data: joinElements(rows),
  }
}

function embeddingOutput({ data }: Record<string, unknown>): RawTensor[] {
  const rows = Array.isArray(data)
    ? data.map((entry) => (isObject(entry) ? entry['embedding'] : undefined))
    : []
  const columns = Array.isArray(rows[0]) ? rows[0].length : 0
  const numbers = new Float64Array(rows.length * columns)
  rows.forEach((row, i) => {
    if (!Array.isArray(row) || row.length !== columns || !row.every((value) => typeof value === 'number'))
      throw new ServeError('INVALID_OUTPUT', 'The response of the model must be vectors of equal length')
    numbers.set(row, i * columns)
  })
  const shape = [rows.length, columns]
  const bytes = Buffer.from(numbers.buffer)
  return [{ name: 'embedding', datatype: 'FP64', shape, parameters: { content_type: 'np' }, data: bytes }]
}

function objectOf(body: Uint8Array): Record<string, unknown> {
  const value = parseJson(asBuffer(body).toString())
  if (isObject(value)) return value
  throw new ServeError('INVALID_OUTPUT', 'The response of the model must be a JSON object')
}
