import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { basename } from 'node:path'
import { FileWords } from './file-words.ts'

const HEADER_BYTES = 24
const MAGIC = 'GGUF'
/** The format's versions so far. */
const VERSIONS: ReadonlySet<number> = new Set([1, 2, 3])
/** The shortest name, type and value of one entry, in any version of the format. */
const MIN_ENTRY_BYTES = 9
/** Types of values that have no fixed size. */
const TEXT = 8
const LIST = 9
/** Bytes of values of the other types, by their number. */
const SIZES: ReadonlyMap<number, number> = new Map([
  [0, 1],
  [1, 1],
  [2, 2],
  [3, 2],
  [4, 4],
  [5, 4],
  [6, 4],
  [7, 1],
  [10, 8],
  [11, 8],
  [12, 8],
])
/** Lists in lists; models have none. */
const MAX_DEPTH = 4

/**
 * Tells a file that is no GGUF file, or only the begin of one, before the runtime starts: it takes seconds
 * to do so, and reads a senseless header, or a list that is longer than the file, for hours.
 * @param path of the first file of the weights
 * @throws Error that names the file and what is wrong with it
 */
export function checkWeights(path: string): void {
  const name = basename(path)
  const file = openSync(path, 'r')
  try {
    const { size } = fstatSync(file)
    const header = readHeader(file)
    if (header.toString('latin1', 0, MAGIC.length) !== MAGIC)
      throw new Error(`${name} must be a GGUF file, but it does not begin with ${MAGIC}`)
    const incomplete = new Error(`${name} must be a whole GGUF file, but it is damaged or incomplete`)
    if (header.length < HEADER_BYTES) throw incomplete
    const version = header.readUInt32LE(4)
    if (!VERSIONS.has(version)) throw new Error(`GGUF version ${version} of ${name} is not supported`)
    const [tensors, entries] =
      version === 1 ? [header.readUInt32LE(8), header.readUInt32LE(12)] : longCounts(header)
    if ((tensors + entries) * MIN_ENTRY_BYTES > size) throw incomplete
    const words = new FileWords(file, version === 1 ? 16 : HEADER_BYTES, size, version === 1 ? 4 : 8)
    if (!entriesFit(words, entries)) throw incomplete
  } finally {
    closeSync(file)
  }
}

/** Whether every text and every list of the metadata ends within the file. */
function entriesFit(words: FileWords, entries: number): boolean {
  for (let left = entries; left > 0; left--)
    if (!words.skip(words.length()) || !valueFits(words, words.uint32(), 0)) return false
  return true
}

function valueFits(words: FileWords, type: number, depth: number): boolean {
  if (type === TEXT) return words.skip(words.length())
  // Where the value of a type that is not known ends is not known either.
  if (type !== LIST) return words.skip(SIZES.get(type) ?? Infinity)
  const inner = words.uint32()
  const count = words.length()
  const size = SIZES.get(inner)
  if (size !== undefined) return words.skip(count * size)
  if (depth === MAX_DEPTH || count > words.left) return false
  for (let left = count; left > 0; left--) if (!valueFits(words, inner, depth + 1)) return false
  return true
}

function longCounts(header: Buffer): [tensors: number, entries: number] {
  return [Number(header.readBigUInt64LE(8)), Number(header.readBigUInt64LE(16))]
}

function readHeader(file: number): Buffer {
  const header = Buffer.alloc(HEADER_BYTES)
  return header.subarray(0, readSync(file, header, 0, HEADER_BYTES, 0))
}
