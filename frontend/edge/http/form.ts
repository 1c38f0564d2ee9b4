import { tryParseJson } from '../../../common/exact-json.ts'
import { checkBody } from '../../../common/json-bounds.ts'
import type { InputPart } from '../../../common/handler-methods.ts'
import { MAX_PARTS, tooManyParts } from '../../jobs/job-request.ts'

const AMPERSAND = 0x26
const EQUALS = 0x3d
const PERCENT = 0x25
const PLUS = 0x2b
const SPACE = 0x20
const JSON_START = /^\s*[{[]/

/**
 * The inputs of a body of the type application/x-www-form-urlencoded, which `curl -d` sends for everything:
 * a JSON object or list is `body` as application/json, a body without `=` is `body` as text/plain, and the
 * others have fields.
 * @throws ServeError INVALID_ARGUMENT with too many fields, or more than `maxElements` of JSON
 */
export function readUrlEncoded(body: Buffer, maxElements: number): InputPart[] {
  if (isJson(body, maxElements)) return [{ name: 'body', contentType: 'application/json', data: body }]
  if (body.includes(EQUALS)) return parseForm(body)
  return [{ name: 'body', contentType: 'text/plain', data: body }]
}

function isJson(body: Buffer, maxElements: number): boolean {
  if (!JSON_START.test(body.toString('latin1', 0, 64))) return false
  checkBody(body, maxElements)
  return tryParseJson(body) !== undefined
}

/**
 * The fields of a form, in order; a last piece without `=` is none, as in TorchServe. It works on bytes,
 * unlike URLSearchParams: a value that is not UTF-8 keeps the client's bytes and does not triple in size.
 * @throws ServeError INVALID_ARGUMENT
 */
export function parseForm(body: Buffer): InputPart[] {
  const parts: InputPart[] = []
  let pieces = 0
  for (let start = 0; start < body.length;) {
    // Empty pieces count too, because a body of many `&` would take long.
    if (++pieces > MAX_PARTS) throw tooManyParts()
    const next = body.indexOf(AMPERSAND, start)
    const end = next === -1 ? body.length : next
    const piece = body.subarray(start, end)
    if (end > start && (next !== -1 || piece.includes(EQUALS))) parts.push(field(piece))
    start = end + 1
  }
  return parts
}

function field(piece: Buffer): InputPart {
  const equals = piece.indexOf(EQUALS)
  const nameEnd = equals === -1 ? piece.length : equals
  return { name: decode(piece.subarray(0, nameEnd)).toString(), data: decode(piece.subarray(nameEnd + 1)) }
}

/** `+` is a space, `%41` an A. A percent sign without two hex digits stays as it is. */
function decode(text: Buffer): Buffer {
  if (!text.includes(PERCENT) && !text.includes(PLUS)) return text
  const decoded = Buffer.allocUnsafe(text.length)
  let length = 0
  for (let i = 0; i < text.length; i++) {
    let byte = text[i]!
    if (byte === PLUS) byte = SPACE
    else if (byte === PERCENT) {
      const escaped = hexDigit(text[i + 1]) * 16 + hexDigit(text[i + 2])
      if (!Number.isNaN(escaped)) {
        byte = escaped
        i += 2
      }
    }
    decoded[length++] = byte
  }
  return decoded.subarray(0, length)
}

function hexDigit(byte = 0): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const lower = byte | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : NaN
}
