import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { basename } from 'node:path'

const HEADER_BYTES = 24
const MAGIC = 'GGUF'
/** The format's versions so far. */
const VERSIONS: ReadonlySet<number> = new Set([1, 2, 3])
/** The shortest name, type and value of one entry, in any version of the format. */
const MIN_ENTRY_BYTES = 9

/**
 * Tells a file that is no GGUF file, or only the begin of one, before the runtime starts: it takes seconds
 * to do so, and reads a senseless header for hours.
 * @param path of the first file of the weights
 * @throws Error that names the file and what is wrong with it
 */
export function checkWeights(path: string): void {
  const { header, size } = readHeader(path)
  const name = basename(path)
  if (header.toString('latin1', 0, MAGIC.length) !== MAGIC)
    throw new Error(`${name} must be a GGUF file, but it does not begin with ${MAGIC}`)
  const incomplete = new Error(`${name} must be a whole GGUF file, but it is damaged or incomplete`)
  if (header.length < HEADER_BYTES) throw incomplete
  const version = header.readUInt32LE(4)
  if (!VERSIONS.has(version)) throw new Error(`${name} has the version ${version} of GGUF, not supported`)
  const counts = version === 1 ? [header.readUInt32LE(8), header.readUInt32LE(12)] : longCounts(header)
  if ((counts[0]! + counts[1]!) * MIN_ENTRY_BYTES > size) throw incomplete
}

function longCounts(header: Buffer): number[] {
  return [Number(header.readBigUInt64LE(8)), Number(header.readBigUInt64LE(16))]
}

function readHeader(path: string): { header: Buffer; size: number } {
  const file = openSync(path, 'r')
  try {
    const header = Buffer.alloc(HEADER_BYTES)
    const bytes = readSync(file, header, 0, HEADER_BYTES, 0)
    return { header: header.subarray(0, bytes), size: fstatSync(file).size }
  } finally {
    closeSync(file)
  }
}
