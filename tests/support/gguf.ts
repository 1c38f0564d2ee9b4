import { fromHalf } from '../../common/tensors/datatypes.ts'

/** Writes a copy of a GGUF file with one more text or number in its metadata, as tools that pack do. */
export function withMetadata(gguf: Buffer, key: string, value: string | number): Buffer {
  const reader = new Reader(gguf)
  const end = reader.endOfInfos()
  const data = gguf.subarray(padded(end))
  const header = Buffer.from(gguf.subarray(0, 24))
  header.writeBigUInt64LE(header.readBigUInt64LE(16) + 1n, 16)
  const entry =
    typeof value === 'string'
      ? [text(key), uint32(TEXT), text(value)]
      : [text(key), uint32(UINT32), uint32(value)]
  const infos = Buffer.concat([header, ...entry, gguf.subarray(24, end)])
  return Buffer.concat([infos, Buffer.alloc(padded(infos.length) - infos.length), data])
}

/** A copy of a GGUF file whose weights of 8 bits (Q8_0) are floats, so that sums do not round them again. */
export function withFloats(gguf: Buffer): Buffer {
  const reader = new Reader(gguf)
  const begin = reader.endOfEntries()
  const infos = reader.tensors()
  const data = gguf.subarray(padded(reader.endOfInfos()))
  const heads: Buffer[] = []
  const weights: Buffer[] = []
  let at = 0
  for (const { head, type, offset, count } of infos) {
    const floats =
      type === Q8_0 ? dequantized(data.subarray(offset), count) : data.subarray(offset, offset + count * 4)
    const place = Buffer.alloc(8)
    place.writeBigUInt64LE(BigInt(at))
    heads.push(head, uint32(F32), place)
    weights.push(floats, Buffer.alloc(padded(floats.length) - floats.length))
    at += padded(floats.length)
  }
  const metadata = Buffer.concat([gguf.subarray(0, begin), ...heads])
  return Buffer.concat([metadata, Buffer.alloc(padded(metadata.length) - metadata.length), ...weights])
}

/** Blocks of a scale in half precision and 32 numbers of 8 bits. */
function dequantized(blocks: Buffer, count: number): Buffer {
  const floats = Buffer.alloc(count * 4)
  for (let i = 0; i < count; i++) {
    const block = Math.floor(i / 32) * 34
    const scale = fromHalf(blocks.readUInt16LE(block))
    floats.writeFloatLE(scale * blocks.readInt8(block + 2 + (i % 32)), i * 4)
  }
  return floats
}

const F32 = 0
const Q8_0 = 8
const UINT32 = 4
const TEXT = 8
const LIST = 9
const ALIGNMENT = 32
/** Bytes of the plain types, by their number. */
const SIZES: Readonly<Record<number, number>> = {
  0: 1,
  1: 1,
  2: 2,
  3: 2,
  4: 4,
  5: 4,
  6: 4,
  7: 1,
  10: 8,
  11: 8,
  12: 8,
}

class Reader {
  readonly #bytes: Buffer
  #at = 24

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  endOfInfos(): number {
    this.tensors()
    return this.#at
  }

  endOfEntries(): number {
    this.#at = 24
    for (let left = Number(this.#bytes.readBigUInt64LE(16)); left > 0; left--) {
      this.#text()
      this.#value(this.#uint32())
    }
    return this.#at
  }

  /** `head`: name and dimensions. `offset`: in the weights. `count`: of numbers. */
  tensors(): { head: Buffer; type: number; offset: number; count: number }[] {
    this.endOfEntries()
    return Array.from({ length: Number(this.#bytes.readBigUInt64LE(8)) }, () => {
      const begin = this.#at
      this.#text()
      let count = 1
      for (let left = this.#uint32(); left > 0; left--) count *= this.#uint64()
      const head = this.#bytes.subarray(begin, this.#at)
      return { head, type: this.#uint32(), offset: this.#uint64(), count }
    })
  }

  #value(type: number): void {
    if (type === TEXT) this.#text()
    else if (type === LIST) {
      const inner = this.#uint32()
      for (let left = this.#uint64(); left > 0; left--) this.#value(inner)
    } else this.#at += SIZES[type]!
  }

  #text(): void {
    const length = this.#uint64()
    this.#at += length
  }

  #uint32(): number {
    this.#at += 4
    return this.#bytes.readUInt32LE(this.#at - 4)
  }

  #uint64(): number {
    this.#at += 8
    return Number(this.#bytes.readBigUInt64LE(this.#at - 8))
  }
}

function padded(at: number): number {
  return Math.ceil(at / ALIGNMENT) * ALIGNMENT
}

function text(value: string): Buffer {
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(Buffer.byteLength(value)))
  return Buffer.concat([length, Buffer.from(value)])
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}
