import { inspect } from 'node:util'
import { ServeError } from '../common/errors.ts'
import { exactJson } from '../common/exact-json.ts'
import { lostIn, warnOfNested } from './lost-in-json.ts'

const EMPTY = Buffer.alloc(0)

/**
 * Encodes one item of a response: bytes as they are, strings as UTF-8, undefined as nothing, everything else
 * as JSON, with bigints as numbers.
 * @throws ServeError INVALID_OUTPUT when it cannot be encoded as JSON
 */
export function encodeOutput(item: unknown): Uint8Array {
  if (typeof item === 'string') return Buffer.from(item)
  if (item instanceof Uint8Array) return item
  if (item === undefined) return EMPTY
  if (ArrayBuffer.isView(item)) return Buffer.from(item.buffer, item.byteOffset, item.byteLength)
  if (item instanceof ArrayBuffer) return Buffer.from(item)
  return Buffer.from(toJson(item))
}

/** @throws ServeError INVALID_OUTPUT when the result is not a list with one item per request */
export function checkAnswer(answer: unknown, batchLength: number): unknown[] {
  if (!Array.isArray(answer)) throw notAList('return', answer)
  if (answer.length !== batchLength) {
    throw new ServeError('INVALID_OUTPUT', 'number of batch response mismatched', {
      detail: `The handler returned ${answer.length} items for ${batchLength} requests`,
    })
  }
  return answer as unknown[]
}

/** Clients get TorchServe's message; the detail is for the handler's author. */
export function notAList(verb: 'return' | 'yield', value: unknown): ServeError {
  const detail = `The handler ${verb}ed ${kindOf(value)}; it must ${verb} an array with one item per request`
  return new ServeError('INVALID_OUTPUT', 'Invalid model predict output', {
    detail: `${detail}: ${exampleOf(value)}`,
  })
}

function kindOf(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (value === null) return 'null'
  if (typeof value !== 'object') return `a ${typeof value}`
  if (value instanceof Uint8Array) return 'bytes'
  return Symbol.iterator in value ? 'an iterable that is not async' : 'an object'
}

const MAX_EXAMPLE_CHARACTERS = 40

/** The right form, with the value if it is short. */
function exampleOf(value: unknown): string {
  const isShort = typeof value === 'string' && value.length <= MAX_EXAMPLE_CHARACTERS
  return isShort ? inspect([value]) : '[item]'
}

function toJson(item: unknown): string {
  if (isPromise(item)) throw unsupported(AWAIT)
  let json: string | undefined
  let cause: unknown
  try {
    json = exactJson(item, 2)
  } catch (thrown) {
    cause = thrown
  }
  if (json !== undefined) {
    const lost = lostIn(json, item)
    if (lost !== undefined) throw unsupported(lost)
    if (typeof item === 'object') warnOfNested(item)
    return json
  }
  const why = cause instanceof Error ? cause.message : `a ${typeof item} has no form in JSON`
  throw unsupported(`An item must be a string, bytes, or a value that JSON can hold: ${why}`, cause)
}

const AWAIT =
  'An item is a Promise, so an await is missing: return await Promise.all(items), or await it before you yield it'

function isPromise(item: unknown): boolean {
  return typeof item === 'object' && item !== null && 'then' in item && typeof item.then === 'function'
}

/** Clients get TorchServe's message; the detail is for the handler's author. */
function unsupported(detail: string, cause?: unknown): ServeError {
  return new ServeError('INVALID_OUTPUT', 'Unsupported model output data type.', { detail, cause })
}
