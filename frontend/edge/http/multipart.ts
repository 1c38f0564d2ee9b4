import { ServeError } from '../../../common/errors.ts'
import type { InputPart } from '../../../common/handler-methods.ts'
import { MAX_PARTS, tooManyParts } from '../../jobs/job-request.ts'
import { parameterOf } from './header-parameters.ts'

/** Headers of a part, in number and bytes. */
const MAX_HEADERS = 100
const MAX_HEADER_BYTES = 16_384
/** RFC 2046 allows 70. */
const MAX_BOUNDARY = 200
/** Lines that begin as a delimiter and go on. */
const MAX_SIMILAR = 10_000

const LINE_END = Buffer.from('\r\n')
const HEAD_END = Buffer.from('\r\n\r\n')
const SPACE = 0x20
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
