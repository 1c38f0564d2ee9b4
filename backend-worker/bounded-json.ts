import { checkTensorBody } from '../common/json-bounds.ts'

/** A worker serves one model, so all its requests have the same bounds. */
let maxElements = 250_000

/** Sets the most elements of a request's JSON, as checkTensorBody counts them. Absent: 250,000. */
export function limitJson(elements = 250_000): void {
  maxElements = elements
}

/**
 * Parses JSON of a client. Its elements are counted before they are built, because they take far more time
 * and memory than their bytes.
 * @throws ServeError INVALID_ARGUMENT with too many elements or levels
 * @throws SyntaxError
 */
export function parseClientJson(json: Uint8Array): unknown {
  const bytes = Buffer.from(json.buffer, json.byteOffset, json.byteLength)
  checkTensorBody(bytes, maxElements)
  return JSON.parse(bytes.toString()) as unknown
}
