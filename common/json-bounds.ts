import { ServeError } from './errors.ts'
import { MAX_NESTING } from './nesting.ts'

/** What a key of an object counts: it takes as much time as five short strings. */
const KEY_COST = 5
/** Shorter texts are parsed in a few milliseconds, whatever they contain. */
const SMALL_BYTES = 65_536
/** A request may contain a value of MAX_NESTING levels in a tensor, an input or a field. */
const MAX_DEPTH = MAX_NESTING + 28

const QUOTE = 0x22
const COLON = 0x3a
const BACKSLASH = 0x5c
const OPEN_LIST = 0x5b
const CLOSE_LIST = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/**
 * Checks a JSON text before JSON.parse builds it, because small elements take far more time and memory than
 * their bytes. Arrays, objects and strings count one element, the key of an object five; numbers, which only
 * the size of the text bounds, nothing. Text that is not JSON passes: JSON.parse refuses it.
 * @throws ServeError INVALID_ARGUMENT with more than `maxElements`, or more than 128 levels
 * @param key of the configuration that has the limit, for the message
 */
export function checkJsonBounds(text: Buffer, maxElements: number, key?: string): void {
  if (text.byteLength <= Math.min(SMALL_BYTES, maxElements)) return
  let left = maxElements
  let depth = 0
  for (let at = 0; at < text.byteLength; at += 1) {
    switch (text[at]) {
      case QUOTE:
        at = stringEnd(text, at)
        left -= 1
        break
      case COLON:
        left -= KEY_COST - 1
        break
      case OPEN_LIST:
      case OPEN_OBJECT:
        left -= 1
        depth += 1
        if (depth > MAX_DEPTH) throw tooDeep()
        break
      case CLOSE_LIST:
      case CLOSE_OBJECT:
        depth -= 1
    }
    if (left < 0) throw tooMany(maxElements, key)
  }
}

/** The position of the closing quote of the string that opens at `at`. */
function stringEnd(text: Buffer, at: number): number {
  for (let end = at + 1; end < text.byteLength; end += 1) {
    const code = text[end]
    if (code === QUOTE) return end
    if (code === BACKSLASH) end += 1
  }
  return text.byteLength
}

function tooDeep(): ServeError {
  return new ServeError('INVALID_ARGUMENT', `JSON must not be nested deeper than ${MAX_DEPTH} levels`)
}

function tooMany(maxElements: number, key: string | undefined): ServeError {
  const where = key === undefined ? '' : ` (${key})`
  return new ServeError('INVALID_ARGUMENT', `JSON must have at most ${maxElements} elements${where}`)
}

/** Checks the body of a request. @throws ServeError INVALID_ARGUMENT */
export function checkBody(body: Buffer, maxElements: number): void {
  checkJsonBounds(body, maxElements, 'max_request_elements')
}
