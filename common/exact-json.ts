import { isUtf8 } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { ServeError } from './errors.ts'
import { isObject, setOwn } from './json.ts'

/**
 * Reads and writes JSON without loss: bytes that are not UTF-8 are an error, and numbers that JavaScript
 * cannot hold are bigints.
 */

const MAX_REASON_CHARACTERS = 200

/** Parses the body of a request, as parseJsonBytes. @throws ServeError MALFORMED_BODY with the place */
export function parseBody(body: Uint8Array): unknown {
  try {
    return parseJsonBytes(body)
  } catch (cause) {
    const why = (cause as Error).message.slice(0, MAX_REASON_CHARACTERS)
    throw new ServeError('MALFORMED_BODY', `The body is not valid JSON: ${why}`, { cause })
  }
}

/** As parseJsonBytes, but undefined, which is no JSON value, for what is not valid JSON. */
export function tryParseJson(json: Uint8Array): unknown {
  try {
    return parseJsonBytes(json)
  } catch {
    return undefined
  }
}

/** Parses JSON in UTF-8, as parseExactJson. @throws SyntaxError with the place */
export function parseJsonBytes(json: Uint8Array): unknown {
  const bytes = Buffer.from(json.buffer, json.byteOffset, json.byteLength)
  const text = bytes.toString()
  if (isUtf8(bytes)) return parseExactJson(text)
  throw new SyntaxError(`Invalid UTF-8 at byte ${invalidByte(bytes, text)}`)
}

const REPLACEMENT = '\ufffd'
const REPLACEMENT_BYTES = Buffer.from(REPLACEMENT)

/** The position of the first byte that is not UTF-8. `text`: the bytes decoded, with U+FFFD for them. */
function invalidByte(bytes: Buffer, text: string): number {
  let byte = 0
  let from = 0
  for (;;) {
    const at = text.indexOf(REPLACEMENT, from)
    byte += Buffer.byteLength(text.slice(from, at))
    // The character may be the client's own.
    if (bytes.compare(REPLACEMENT_BYTES, 0, 3, byte, Math.min(byte + 3, bytes.length)) !== 0) return byte
    byte += 3
    from = at + 1
  }
}

/** Where a number begins that may be beyond 2^53-1: sixteen digits that are no fraction. */
const MANY_DIGITS = /[[,:\s-]\d{16}|^\d{16}/
/** Where a number ends that may be beyond 1.8e308. */
const HIGH_EXPONENT = /\d[eE]\+?\d{3,}\s*(?:[,\]}]|$)/
/** The longest bigint that is read, as in Python: the time for one grows with the square of its digits. */
const MAX_DIGITS = 4_300

/**
 * JSON.parse that keeps every number: integers beyond 2^53-1, and numbers beyond 1.8e308, are bigints. Only a
 * text that may have one takes more time. @throws SyntaxError
 */
export function parseExactJson(text: string): unknown {
  if (!MANY_DIGITS.test(text) && !HIGH_EXPONENT.test(text)) return JSON.parse(text) as unknown
  const mark = newMark()
  const marked = markLarge(text, mark)
  if (marked === text) return JSON.parse(text) as unknown
  try {
    return withBigints(JSON.parse(marked), mark)
  } catch (error) {
    // For the places in its message, and without the mark.
    JSON.parse(text)
    throw error
  }
}

/** Nobody outside of this process can write a string that begins with it. */
function newMark(): string {
  return randomBytes(9).toString('base64url')
}

/**
 * A string, or a number that may be beyond what JavaScript holds. What JSON does not take, such as leading
 * zeros and numbers as keys, stays what it does not take.
 */
const STRING_OR_LARGE =
  /"|(?<![-+.\deE])-?(?:[1-9]\d{15,}(?:\.\d+)?(?:[eE][+-]?\d+)?|(?:0|[1-9]\d*)(?:\.\d+)?[eE]\+?\d{3,})(?![\d.eE]|\s*:)/g

/** The text with strings in place of large numbers. @throws SyntaxError for one of too many digits */
function markLarge(text: string, mark: string): string {
  const next = new RegExp(STRING_OR_LARGE)
  let marked = ''
  let copied = 0
  for (let found = next.exec(text); found !== null; found = next.exec(text)) {
    const [token] = found
    if (token === '"') next.lastIndex = stringEnd(text, found.index + 1)
    else if (isLarge(token)) {
      marked += `${text.slice(copied, found.index)}"${mark}${digitsOf(token)}"`
      copied = next.lastIndex
    }
  }
  return marked + text.slice(copied)
}

const BACKSLASH = 0x5c

function isLarge(number: string): boolean {
  const value = Number(number)
  return !Number.isFinite(value) || (!Number.isSafeInteger(value) && /^-?\d+$/.test(number))
}

/** Changes the value. JSON.parse with a reviver takes ten times as long. */
function withBigints(value: unknown, mark: string): unknown {
  if (typeof value === 'string') return value.startsWith(mark) ? BigInt(value.slice(mark.length)) : value
  if (Array.isArray(value)) {
    const list = value as unknown[]
    for (let i = 0; i < list.length; i += 1) {
      const each = list[i]
      if (typeof each === 'string' || typeof each === 'object') list[i] = withBigints(each, mark)
    }
  } else if (isObject(value)) {
    for (const [name, each] of Object.entries(value)) setOwn(value, name, withBigints(each, mark))
  }
  return value
}

/** The number without exponent and fraction. */
function digitsOf(number: string): string {
  const [, whole = '', fraction = '', exponent = '0'] = /^(-?\d+)(?:\.(\d+))?(?:[eE](.+))?$/.exec(number)!
  const zeros = Number(exponent) - fraction.length
  if (zeros >= 0 && whole.length + fraction.length + zeros <= MAX_DIGITS)
    return `${whole}${fraction}${'0'.repeat(zeros)}`
  throw new SyntaxError(`Number ${number.slice(0, 20)}... must have at most ${MAX_DIGITS} digits`)
}

/** The position after the closing quote of the string that begins at `at`. */
function stringEnd(text: string, at: number): number {
  for (let end = text.indexOf('"', at); end !== -1; end = text.indexOf('"', end + 1)) {
    let slashes = 0
    while (text.charCodeAt(end - 1 - slashes) === BACKSLASH) slashes += 1
    if (slashes % 2 === 0) return end + 1
  }
  return text.length
}

/**
 * JSON.stringify that writes bigints as numbers.
 * @param indent as in JSON.stringify
 * @throws TypeError for a value that has no form in JSON, such as one that contains itself
 */
export function exactJson(value: unknown, indent?: number): string {
  try {
    return JSON.stringify(value, null, indent)
  } catch (error) {
    if (!String(error).includes('BigInt')) throw error
  }
  const mark = newMark()
  const marked = JSON.stringify(
    value,
    (_key, each: unknown) => (typeof each === 'bigint' ? `${mark}${each}` : each),
    indent,
  )
  return marked.replaceAll(new RegExp(`"${mark}(-?\\d+)"`, 'g'), '$1')
}
