import { closeSync, fstatSync, openSync, readdirSync, readSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

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
/** Kinds of GGUF files that are no models, by `general.type`. */
const OTHERS: ReadonlyMap<string, string> = new Map([
  ['adapter', 'a LoRA adapter'],
  ['mmproj', 'the image part (mmproj) of a model'],
])

/**
 * Tells a file that is no GGUF file, only the begin of one, or no model, before the runtime starts: it takes
 * seconds to do so, and reads a senseless header, or a list that is longer than the file, for hours.
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
    const facts = factsOf(words, entries)
    if (facts === undefined) throw incomplete
    checkKind(name, facts)
  } finally {
    closeSync(file)
  }
}

/**
 * A warning about weights that do not fit into the memory: the system may kill the worker without a word.
 * @param path of the first file of the weights
 * @param memory in bytes
 */
export function memoryWarning(path: string, memory: number): string | undefined {
  const folder = dirname(path)
  const whole = (name: string) => name.replace(/-\d{5}(-of-\d{5}\.gguf)$/i, '$1')
  const parts = readdirSync(folder).filter((name) => whole(name) === whole(basename(path)))
  const bytes = parts.reduce((sum, part) => sum + statSync(join(folder, part)).size, 0)
  if (bytes <= memory) return undefined
  const needs = `${basename(path)} has ${gigabytes(bytes)}, and there is memory of ${gigabytes(memory)}`
  return `${needs}: it will be very slow, or the system will kill its worker; take a smaller quantization`
}

function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(1)} GB`
}

/** Short texts of the metadata by key; undefined: one of its texts or lists does not end within the file. */
function factsOf(words: FileWords, entries: number): ReadonlyMap<string, string> | undefined {
  const facts = new Map<string, string>()
  for (let left = entries; left > 0; left--) {
    const key = words.text(words.length())
    const type = words.uint32()
    const value = type === TEXT ? words.text(words.length()) : valueFits(words, type, 0) ? '' : undefined
    if (key === undefined || value === undefined) return undefined
    facts.set(key, value)
  }
  return facts
}

function checkKind(name: string, facts: ReadonlyMap<string, string>): void {
  const old = facts.get('general.architecture') === 'clip' ? 'mmproj' : 'model'
  const kind = facts.get('general.type') ?? (facts.has('adapter.type') ? 'adapter' : old)
  if (kind === 'model') return
  const what = OTHERS.get(kind) ?? `a file of the type ${kind}`
  throw new Error(`${name} is ${what} and cannot be served alone: serve the .gguf file of its model`)
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

/** Bytes read at once: the words of a vocabulary are short, and there are hundreds of thousands. */
const PIECE_BYTES = 256 * 1024

/** Names of keys and kinds are shorter; longer texts are not read. */
const MAX_TEXT_BYTES = 256

/**
 * Numbers and texts of a file, one after the other, little-endian. Behind the end of the file all numbers are
 * infinite.
 */
class FileWords {
  readonly #file: number
  readonly #size: number
  readonly #lengthBytes: 4 | 8
  readonly #piece = Buffer.alloc(PIECE_BYTES)
  #pieceAt = 0
  #pieceEnd = 0
  #at: number

  /**
   * @param at where to begin
   * @param size of the file in bytes
   * @param lengthBytes of a length
   */
  constructor(file: number, at: number, size: number, lengthBytes: 4 | 8) {
    this.#file = file
    this.#at = at
    this.#size = size
    this.#lengthBytes = lengthBytes
  }

  /** Bytes up to the end of the file. */
  get left(): number {
    return this.#size - this.#at
  }

  uint32(): number {
    const place = this.#take(4)
    return place === undefined ? Infinity : this.#piece.readUInt32LE(place)
  }

  length(): number {
    if (this.#lengthBytes === 4) return this.uint32()
    const place = this.#take(8)
    return place === undefined ? Infinity : Number(this.#piece.readBigUInt64LE(place))
  }

  /** A text of known length, if it is short; undefined: the file has fewer bytes. */
  text(bytes: number): string | undefined {
    if (bytes > MAX_TEXT_BYTES) return this.skip(bytes) ? '' : undefined
    const place = this.#take(bytes)
    return place === undefined ? undefined : this.#piece.toString('utf8', place, place + bytes)
  }

  /** False: the file has fewer bytes. */
  skip(bytes: number): boolean {
    if (bytes > this.left) return false
    this.#at += bytes
    return true
  }

  /** Where the bytes are in the piece; undefined: the file has fewer. */
  #take(bytes: number): number | undefined {
    const at = this.#at
    if (!this.skip(bytes)) return undefined
    if (at < this.#pieceAt || at + bytes > this.#pieceEnd) {
      this.#pieceAt = at
      this.#pieceEnd = at + readSync(this.#file, this.#piece, 0, PIECE_BYTES, at)
      if (at + bytes > this.#pieceEnd) return undefined
    }
    return at - this.#pieceAt
  }
}
