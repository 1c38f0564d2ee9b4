import { ServeError } from './errors.ts'
import { MAX_NESTING } from './json.ts'

/** What a key of an object counts: it takes as much time as five short strings. */
const KEY_COST = 5
/** What a number or another entry counts besides, where numbers count: a quarter of a short string. */
const ENTRY_COST = 0.25
/** Shorter texts are parsed in a few milliseconds, whatever they contain. */
const SMALL_BYTES = 65_536
/** A request may contain a value of MAX_NESTING levels in a tensor, an input or a field. */
const MAX_DEPTH = MAX_NESTING + 28

const QUOTE = 0x22
const COLON = 0x3a
const COMMA = 0x2c
const BACKSLASH = 0x5c
const OPEN_LIST = 0x5b
const CLOSE_LIST = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

interface BoundsOptions {
  /** The key of the configuration that has the limit, for the message. */
  readonly key?: string
  /** Entries count nothing: only the size of the text bounds the numbers of tensors. Default false. */
  readonly tensors?: boolean
}

/**
 * Checks a JSON text before JSON.parse builds it, because small elements take far more time and memory than
 * their bytes. Arrays, objects and strings count one element, the key of an object five, and every further
 * entry a quarter, so four numbers are one element. Text that is not JSON passes: JSON.parse refuses it.
 * @throws ServeError INVALID_ARGUMENT with more than `maxElements`, or more than 128 levels
 */
export function checkJsonBounds(text: Buffer, maxElements: number, options: BoundsOptions = {}): void {
  if (text.length <= Math.min(SMALL_BYTES, maxElements)) return
  const { key, tensors = false } = options
  const entryCost = tensors ? 0 : ENTRY_COST
  let left = maxElements
  let depth = 0
  for (let at = 0; at < text.length; at += 1) {
    switch (text[at]) {
      case QUOTE:
        at = stringEnd(text, at)
        left -= 1
        break
      case COLON:
        left -= KEY_COST - 1
        break
      case COMMA:
        left -= entryCost
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
  for (let end = at + 1; end < text.length; end += 1) {
    const code = text[end]
    if (code === QUOTE) return end
    if (code === BACKSLASH) end += 1
  }
  return text.length
}

function tooDeep(): ServeError {
  return new ServeError('INVALID_ARGUMENT', `JSON must not be nested deeper than ${MAX_DEPTH} levels`)
}

function tooMany(maxElements: number, key: string | undefined): ServeError {
  const where = key === undefined ? '' : ` (${key})`
  return new ServeError('INVALID_ARGUMENT', `JSON must have at most ${maxElements} elements${where}`)
}

const KEY = 'max_request_elements'

/** Checks the body of a request. @throws ServeError INVALID_ARGUMENT */
export function checkBody(body: Buffer, maxElements: number): void {
  checkJsonBounds(body, maxElements, { key: KEY })
}

/** The same for a body that may have tensors. @throws ServeError INVALID_ARGUMENT */
export function checkTensorBody(body: Buffer, maxElements: number): void {
  checkJsonBounds(body, maxElements, { key: KEY, tensors: true })
}
