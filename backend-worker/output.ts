import { inspect } from 'node:util'
import { ServeError } from '../common/errors.ts'
import { exactJson } from '../common/exact-json.ts'

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

/** How to convert what JSON writes as `{}`, by the name that JavaScript has for it. */
const CONVERSIONS: ReadonlyMap<string, string> = new Map([
  ['Map', 'use Object.fromEntries(map)'],
  ['Set', 'use [...set]'],
  ['Headers', 'use Object.fromEntries(headers)'],
  ['URLSearchParams', 'use String(params)'],
  ['Response', 'use await response.json() or await response.text()'],
  ['Blob', 'use new Uint8Array(await blob.arrayBuffer())'],
  ['ReadableStream', 'use for await (const chunk of stream) yield [chunk]'],
  ['Generator', 'use [...generator]'],
  ['AsyncGenerator', 'use for await (const item of generator) yield [item]'],
  ['Error', 'throw it'],
  ['Promise', 'await it'],
])

/** Says what JSON lost of an item without an error; undefined: nothing. An empty object is one. */
function lostIn(json: string, item: unknown): string | undefined {
  if (json === 'null' && typeof item === 'number') return `An item is ${item}, ${WOULD}null`
  if (json !== '{}') return undefined
  const kind = tagOf(item)
  return kind === 'Object' ? undefined : `An item is ${article(kind)}, ${WOULD}{}; ${hintFor(kind)}`
}

const WOULD = 'which JSON cannot hold: it would become '

/** So many items of a worker are looked at: a handler answers in one shape, and looking takes time. */
const LOOKS = 20
/** Values of one item that are looked at: they take about a third of a millisecond. */
const MAX_VALUES = 1000
/** Levels of one item that are looked at. */
const MAX_DEPTH = 100
const MAX_TOLD = 500

let looks = LOOKS

/** Warns, once, of what JSON has lost inside of an item, which is sent all the same. */
export function warnOfNested(item: object | null): void {
  if (looks === 0) return
  looks -= 1
  const lost = lostInside(item, '', { values: MAX_VALUES, depth: MAX_DEPTH })
  if (lost === undefined) return
  looks = 0
  process.stderr.write(`${lost.replace(/\s+/g, ' ').slice(0, MAX_TOLD)}\n`)
}

/** @param at where the value is in its item, as JavaScript writes it: `.boxes[0]` */
function lostInside(value: unknown, at: string, left: { values: number; depth: number }): string | undefined {
  left.values -= 1
  if (typeof value === 'number')
    return Number.isFinite(value)
      ? undefined
      : `An item has ${value} at ${at}, which JSON cannot hold: it becomes null`
  if (typeof value !== 'object' || value === null || hasOwnJson(value)) return undefined
  const kind = tagOf(value)
  if (ArrayBuffer.isView(value))
    return `An item has ${article(kind)} at ${at}, which JSON writes as an object with a key for each number; use [...array]`
  if (kind !== 'Object' && kind !== 'Array')
    return PRIMITIVES.has(kind)
      ? undefined
      : `An item has ${article(kind)} at ${at}, ${BECOMES}; ${hintFor(kind)}`
  if (left.depth === 0) return undefined
  left.depth -= 1
  for (const [key, each] of Object.entries(value)) {
    if (left.values <= 0) return undefined
    const lost = lostInside(each, `${at}${kind === 'Array' ? `[${key}]` : `.${key}`}`, left)
    if (lost !== undefined) return lost
  }
  left.depth += 1
  return undefined
}

const BECOMES = 'which JSON cannot hold: it becomes {}'
/** Objects around values that JSON knows. */
const PRIMITIVES: ReadonlySet<string> = new Set(['Number', 'String', 'Boolean'])

function hasOwnJson(value: object): boolean {
  return 'toJSON' in value && typeof value.toJSON === 'function'
}

function tagOf(value: unknown): string {
  return Object.prototype.toString.call(value).slice('[object '.length, -1)
}

function article(kind: string): string {
  return /^[AEIOU]/.test(kind) ? `an ${kind}` : `a ${kind}`
}

function hintFor(kind: string): string {
  return CONVERSIONS.get(kind) ?? 'convert it first'
}
