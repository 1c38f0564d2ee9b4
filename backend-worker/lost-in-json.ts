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
export function lostIn(json: string, item: unknown): string | undefined {
  if (json === 'null' && typeof item === 'number') return `An item is ${item}, ${WOULD}null`
  if (json !== '{}') return undefined
  const kind = kindOf(item)
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
  const kind = kindOf(value)
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

function kindOf(value: unknown): string {
  return Object.prototype.toString.call(value).slice('[object '.length, -1)
}

function article(kind: string): string {
  return /^[AEIOU]/.test(kind) ? `an ${kind}` : `a ${kind}`
}

function hintFor(kind: string): string {
  return CONVERSIONS.get(kind) ?? 'convert it first'
}
