import { parseJsonBytes } from '../common/exact-json.ts'
import { checkTensorBody } from '../common/json-bounds.ts'

/** The default of max_request_elements. */
const DEFAULT_ELEMENTS = 250_000

/** A worker serves one model, so all its requests have the same bounds. */
let maxElements = DEFAULT_ELEMENTS

/** Sets the most elements of a request's JSON, as checkTensorBody counts them. */
export function limitJson(elements = DEFAULT_ELEMENTS): void {
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
  return parseJsonBytes(bytes)
}
