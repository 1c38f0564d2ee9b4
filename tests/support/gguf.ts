/** Writes a copy of a GGUF file with one more text in its metadata, as a tool that packs models does. */
export function withMetadata(gguf: Buffer, key: string, value: string): Buffer {
  const reader = new Reader(gguf)
  const end = reader.endOfInfos()
  const data = gguf.subarray(padded(end))
  const header = Buffer.from(gguf.subarray(0, 24))
  header.writeBigUInt64LE(header.readBigUInt64LE(16) + 1n, 16)
  const entry = Buffer.concat([text(key), uint32(TEXT), text(value)])
  const infos = Buffer.concat([header, entry, gguf.subarray(24, end)])
  return Buffer.concat([infos, Buffer.alloc(padded(infos.length) - infos.length), data])
}

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
    const tensors = Number(this.#bytes.readBigUInt64LE(8))
    const entries = Number(this.#bytes.readBigUInt64LE(16))
    for (let i = 0; i < entries; i++) {
      this.#text()
      this.#value(this.#uint32())
    }
    for (let i = 0; i < tensors; i++) {
      this.#text()
      const dimensions = this.#uint32()
      this.#at += dimensions * 8 + 12
    }
    return this.#at
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
