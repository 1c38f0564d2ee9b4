import { tryParseJson } from '../../../common/exact-json.ts'
import { checkBody } from '../../../common/json-bounds.ts'
import type { InputPart } from '../../../common/handler-methods.ts'
import { MAX_PARTS, tooManyParts } from '../../jobs/job-request.ts'
import { ServeError } from '../../../common/errors.ts'

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

/** Headers of a part, in number and bytes. */
const MAX_HEADERS = 100
const MAX_HEADER_BYTES = 16_384
/** RFC 2046 allows 70. */
const MAX_BOUNDARY = 200
/** Lines that begin as a delimiter and go on. */
const MAX_SIMILAR = 10_000

const LINE_END = Buffer.from('\r\n')
const HEAD_END = Buffer.from('\r\n\r\n')
const TAB = 0x09
const DASH = 0x2d
const CR = 0x0d
const LF = 0x0a

/**
 * The parts of a complete multipart/form-data body (RFC 7578), in order, their bytes as they are in the body.
 * Parts with a file name keep their content type; plain fields have none, as in TorchServe
 * (NettyUtils.getFormData). The time is proportional to the body, whatever it contains: parsers that make
 * an object for what resembles a delimiter take seconds and gigabytes for a body that consists of such.
 * Undefined: the content type has no boundary.
 * @throws ServeError MALFORMED_BODY or INVALID_ARGUMENT
 */
export function parseMultipart(body: Buffer, contentType: string): InputPart[] | undefined {
  const boundary = parameterOf(contentType, 'boundary')
  if (boundary === undefined) return undefined
  if (boundary === '' || boundary.length > MAX_BOUNDARY)
    throw malformed(`the boundary in the Content-Type must have 1 to ${MAX_BOUNDARY} characters`)
  const delimiters = new Delimiters(body, boundary)
  const parts: InputPart[] = []
  let at = delimiters.next(0)
  while (at !== undefined && !at.isLast) {
    if (parts.length === MAX_PARTS) throw tooManyParts()
    const end = delimiters.next(at.end)
    if (end === undefined) break
    parts.push(partOf(body.subarray(at.end - LINE_END.length, end.start)))
    at = end
  }
  if (at?.isLast !== true) throw malformed('it must end with its boundary and two dashes')
  return parts
}

/** A line that separates parts. */
interface Delimiter {
  /** Where its line end before begins. */
  readonly start: number
  /** What follows its line. */
  readonly end: number
  readonly isLast: boolean
}

/** Finds the delimiters of a body: lines of two dashes and the boundary; the last one has dashes behind. */
class Delimiters {
  readonly #body: Buffer
  readonly #text: Buffer
  #similar = 0

  constructor(body: Buffer, boundary: string) {
    this.#body = body
    this.#text = Buffer.from(`\r\n--${boundary}`, 'latin1')
  }

  /** The first one whose line begins at `from` or later; undefined: there is none. */
  next(from: number): Delimiter | undefined {
    const text = this.#text
    // The line end before it may be that of the delimiter before, and the body's first line has none.
    if (from === 0 && this.#body.subarray(0, text.length - 2).equals(text.subarray(2))) {
      const first = this.#at(-LINE_END.length)
      if (first !== undefined) return { ...first, start: 0 }
    }
    let start = this.#body.indexOf(text, Math.max(0, from - LINE_END.length))
    while (start !== -1) {
      const found = this.#at(start)
      if (found !== undefined) return found
      if (++this.#similar > MAX_SIMILAR)
        throw malformed(`at most ${MAX_SIMILAR} lines of its content may begin like its boundary`)
      start = this.#body.indexOf(text, start + 1)
    }
    return undefined
  }

  /** Undefined: the line goes on, so it is content. */
  #at(start: number): Delimiter | undefined {
    const body = this.#body
    let end = start + this.#text.length
    if (body[end] === DASH && body[end + 1] === DASH) return { start, end: end + 2, isLast: true }
    while (body[end] === SPACE || body[end] === TAB) end += 1
    return body[end] === CR && body[end + 1] === LF ? { start, end: end + 2, isLast: false } : undefined
  }
}

/** `text`: from the line end of its delimiter on. */
function partOf(text: Buffer): InputPart {
  const headEnd = text.subarray(0, MAX_HEADER_BYTES + HEAD_END.length).indexOf(HEAD_END)
  if (headEnd === -1) throw malformed(`each part must have headers of at most ${MAX_HEADER_BYTES} bytes`)
  const head = headersOf(text.toString('utf8', LINE_END.length, headEnd))
  const disposition = head.get('content-disposition') ?? ''
  const name = /^form-data\s*(?:;|$)/i.test(disposition) ? parameterOf(disposition, 'name') : undefined
  if (name === undefined) throw malformed('each part must have a name')
  const data = text.subarray(headEnd + HEAD_END.length)
  const isFile = parameterOf(disposition, 'filename') !== undefined
  return { name, contentType: isFile ? typeOf(head.get('content-type')) : undefined, data }
}

function typeOf(header: string | undefined): string {
  return header?.split(';', 1)[0]!.trim().toLowerCase() || 'text/plain'
}

/** By name in lower case; of two with a name the first counts. A line that begins with a space goes on. */
function headersOf(text: string): ReadonlyMap<string, string> {
  const headers = new Map<string, string>()
  const lines = text.replaceAll(/\r\n[ \t]+/g, ' ').split('\r\n')
  if (lines.length > MAX_HEADERS) throw malformed(`each part must have at most ${MAX_HEADERS} headers`)
  for (const line of lines) {
    const colon = line.indexOf(':')
    if (colon <= 0 || /[\r\n]/.test(line))
      throw malformed('each part must have a header, and each header a name and a colon')
    const name = line.slice(0, colon).trim().toLowerCase()
    if (!headers.has(name)) headers.set(name, line.slice(colon + 1).trim())
  }
  return headers
}

function malformed(why: string): ServeError {
  return new ServeError('MALFORMED_BODY', `The multipart body cannot be read: ${why}.`)
}

/** A parameter of a header: `; name=token`, or a quoted text, which may have a backslash before a quote. */
const PARAMETER = /;[ \t]*([^\s=;"]+?)(\*?)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\[^])*)"|([^\s;"]*))/y
/** What stands between parameters, such as what is no parameter. */
const NEXT = /[^;]*/y

/**
 * The value of a parameter of a header such as Content-Disposition (RFC 9110, 5.6.6); the first one counts.
 * `name*=UTF-8''...` is decoded (RFC 8187). Undefined: the header has none, or it cannot be decoded.
 */
function parameterOf(header: string, name: string): string | undefined {
  NEXT.lastIndex = 0
  for (;;) {
    NEXT.exec(header)
    const at = NEXT.lastIndex
    if (at >= header.length) return undefined
    PARAMETER.lastIndex = at
    const [found, key, extended, quoted, token] = PARAMETER.exec(header) ?? []
    if (key?.toLowerCase() === name) {
      if (extended === '*') return decoded(token ?? '')
      return quoted === undefined ? token : quoted.replaceAll(/\\(["\\])/g, '$1')
    }
    NEXT.lastIndex = at + (found?.length ?? 1)
  }
}

function decoded(value: string): string | undefined {
  const [, text] = /^utf-8'[^']*'(.*)$/i.exec(value) ?? []
  try {
    return text === undefined ? undefined : decodeURIComponent(text)
  } catch {
    return undefined
  }
}
