import type { Random } from '../support/random.ts'

export const MAX_BYTES = 64 * 1024
const NUMBERS = [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff]
const TEXTS = [
  ...[
    '-1',
    '1e999',
    '9007199254740993',
    '0x10',
    'null',
    'true',
    '[]',
    '{}',
    '""',
    'NaN',
    '\u0000',
    '\ud800',
    '\r\n',
  ],
  ...[
    '__proto__',
    'constructor',
    'toString',
    '../',
    '/',
    '%00',
    '%',
    '..',
    ' ',
    '\t',
    '<<',
    '&a',
    '*a',
    '!!js/function',
  ],
]

type Mutation = (input: Buffer, random: Random, others: readonly Buffer[], words: readonly string[]) => Buffer

const at = (input: Buffer, random: Random): number => random.integer(0, Math.max(0, input.length - 1))

/** Bytes from..to are replaced. */
function replaced(input: Buffer, from: number, to: number, by: Uint8Array): Buffer {
  return Buffer.concat([input.subarray(0, from), by, input.subarray(to)])
}

function range(input: Buffer, random: Random): [from: number, to: number] {
  const from = at(input, random)
  return [from, Math.min(input.length, from + Math.floor(64 ** random.fraction()))]
}

const MUTATIONS: readonly Mutation[] = [
  (input, random) => {
    const changed = Buffer.from(input)
    for (let k = random.integer(1, 4); k > 0 && changed.length > 0; k -= 1)
      changed[at(input, random)]! ^= 1 << random.integer(0, 7)
    return changed
  },
  (input, random) => replaced(input, ...range(input, random), random.bytes(random.integer(1, 4))),
  (input, random) => replaced(input, ...range(input, random), Buffer.alloc(0)),
  (input, random) => {
    const [from, to] = range(input, random)
    const times = random.pick([1, 1, 2, 10, 200])
    return replaced(
      input,
      to,
      to,
      Buffer.concat(Array.from({ length: times }, () => input.subarray(from, to))),
    )
  },
  (input, random) => {
    const place = at(input, random)
    const size = random.pick([1, 2, 4])
    const number = Buffer.alloc(4)
    number.writeUInt32BE(random.pick(NUMBERS))
    const bytes = number.subarray(4 - size)
    return replaced(input, place, place + size, random.chance(0.5) ? bytes : Buffer.from(bytes).reverse())
  },
  (input, random, _others, words) => {
    const place = at(input, random)
    const word = Buffer.from(random.pick(words.length > 0 && random.chance(0.7) ? words : TEXTS))
    return replaced(input, place, random.chance(0.5) ? place : place + word.length, word)
  },
  (input, random, others) => {
    const other = random.pick(others)
    return Buffer.concat([input.subarray(0, at(input, random)), other.subarray(at(other, random))])
  },
  (input, random, others) => {
    const other = random.pick(others)
    return replaced(input, ...range(input, random), other.subarray(...range(other, random)))
  },
  (input, random) => {
    const text = input.toString('latin1')
    const numbers = [...text.matchAll(/\d+/g)]
    if (numbers.length === 0) return input
    const { index, 0: digits } = random.pick(numbers)
    return replaced(input, index, index + digits.length, Buffer.from(String(random.pick(NUMBERS))))
  },
  (input, random) => input.subarray(0, at(input, random)),
]

/** A changed copy of an input, of at most 64 KiB. */
export function mutate(
  input: Buffer,
  random: Random,
  others: readonly Buffer[],
  words: readonly string[] = [],
): Buffer {
  let changed = input
  for (let k = random.integer(1, 5); k > 0; k -= 1)
    changed = random.pick(MUTATIONS)(changed, random, others, words)
  return changed.subarray(0, MAX_BYTES)
}
