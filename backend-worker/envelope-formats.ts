import { ServeError } from '../common/errors.ts'
import { exactJson } from '../common/exact-json.ts'
import { isObject } from '../common/json.ts'
import { parseClientJson } from './bounded-json.ts'
import type { Context, HandlerResponse } from './handler.ts'

/** One unpacked request. */
export interface Opened {
  /** The rows that the handler gets in place of the request. */
  readonly rows: readonly unknown[]
  /** Builds the response from the outputs for the rows. */
  close(outputs: readonly unknown[]): HandlerResponse
}

/**
 * Unpacks one request of a batch.
 * @param content the value of its part `data`, else `body`, else all its parts
 * @throws ServeError INVALID_ARGUMENT when the content does not have the format of the envelope
 */
export type Open = (content: unknown, context: Context, index: number) => Opened

/** Passes the content on unchanged. */
export const body: Open = (content) => ({ rows: [content], close: ([output]) => output })

/** `{"instances": [...]}` -> `{"predictions": [...]}`. `{"b64": "..."}` stands for bytes. */
export const json: Open = (content) => ({
  rows: instances(content).map(withBytes),
  close: (outputs) => exactJson({ predictions: outputs }),
})

/** KServe V1: `{"instances": [...]}` -> `{"predictions": [...]}`, or `explanations` from /explanations. */
export const kserve: Open = (content, context) => ({
  rows: instances(content),
  close: (outputs) => ({ [context.explain ? 'explanations' : 'predictions']: outputs }),
})

/** @throws ServeError INVALID_ARGUMENT when it is not a JSON object */
export function jsonObject(content: unknown): Readonly<Record<string, unknown>> {
  let value = content
  if (typeof value === 'string' || Buffer.isBuffer(value)) {
    try {
      value = parseClientJson(Buffer.from(value))
    } catch (thrown) {
      if (thrown instanceof ServeError) throw thrown
      throw malformed(`The request is not valid JSON: ${(thrown as Error).message.slice(0, 200)}`, thrown)
    }
  }
  if (isObject(value)) return value
  throw malformed('The request must be a JSON object')
}

export function malformed(message: string, cause?: unknown): ServeError {
  return new ServeError('INVALID_ARGUMENT', message, { cause })
}

function instances(content: unknown): unknown[] {
  const list = jsonObject(content)['instances']
  if (Array.isArray(list)) return list as unknown[]
  throw malformed('The request must have a list "instances"')
}

function withBytes(row: unknown): unknown {
  if (!isObject(row)) return row
  return (
    bytesOf(row) ?? Object.fromEntries(Object.entries(row).map(([key, cell]) => [key, bytesOf(cell) ?? cell]))
  )
}

function bytesOf(value: unknown): Buffer | undefined {
  if (!isObject(value) || typeof value['b64'] !== 'string' || Object.keys(value).length !== 1)
    return undefined
  return Buffer.from(value['b64'], 'base64')
}
