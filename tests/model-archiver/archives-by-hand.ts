import { deflateRawSync, gzipSync } from 'node:zlib'

/** An entry of an archive that no packer would write. */
export interface RawEntry {
  name: string
  content?: string | Buffer
  /** zip: type bits and rights, default a regular file. */
  mode?: number
  /** zip: size to declare instead of the real one. */
  declaredSize?: number
  /** zip: checksum to declare; default the real one. */
  crc?: number
  flags?: number
  method?: number
  /** tar: type letter, default `0`, a file. */
  type?: string
  link?: string
}

/** A zip, byte by byte. */
export function rawZip(entries: RawEntry[]): Buffer {
  const locals: Buffer[] = []
  const centrals: Buffer[] = []
  let offset = 0
  for (const entry of entries) {
    const { local, central } = zipEntry(entry, offset)
    locals.push(local)
    centrals.push(central)
    offset += local.length
  }
  const directory = Buffer.concat(centrals)
  const end = Buffer.alloc(22)
  end.writeUInt32LE(0x06054b50, 0)
  end.writeUInt16LE(entries.length, 8)
  end.writeUInt16LE(entries.length, 10)
  end.writeUInt32LE(directory.length, 12)
  end.writeUInt32LE(offset, 16)
  return Buffer.concat([...locals, directory, end])
}

function zipEntry(entry: RawEntry, offset: number): { local: Buffer; central: Buffer } {
  const name = Buffer.from(entry.name)
  const content = Buffer.from(entry.content ?? '')
  const data = deflateRawSync(content)
  const fields = Buffer.alloc(26)
  fields.writeUInt16LE(20, 0)
  fields.writeUInt16LE(entry.flags ?? 0x800, 2)
  fields.writeUInt16LE(entry.method ?? 8, 4)
  fields.writeUInt32LE(entry.crc ?? crc32(content), 10)
  fields.writeUInt32LE(data.length, 14)
  fields.writeUInt32LE(entry.declaredSize ?? content.length, 18)
  fields.writeUInt16LE(name.length, 22)
  const rest = Buffer.alloc(14)
  rest.writeUInt32LE((((entry.mode ?? 0o100644) << 16) >>> 0) >>> 0, 6)
  rest.writeUInt32LE(offset, 10)
  return {
    local: Buffer.concat([signature(0x04034b50), fields, name, data]),
    central: Buffer.concat([signature(0x02014b50), Buffer.from([20, 3]), fields, rest, name]),
  }
}

export function signature(value: number): Buffer {
  const buffer = Buffer.alloc(4)
  buffer.writeUInt32LE(value)
  return buffer
}

/** As a zip has it; Node has one of its own since 20.15. */
export function crc32(data: Buffer): number {
  let crc = 0xffffffff
  for (const byte of data) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0)
  }
  return (crc ^ 0xffffffff) >>> 0
}

/** A compressed tar, byte by byte. */
export function rawTgz(entries: RawEntry[]): Buffer {
  return gzipSync(Buffer.concat([...entries.map(tarEntry), Buffer.alloc(1024)]))
}

function tarEntry(entry: RawEntry): Buffer {
  const content = Buffer.from(entry.content ?? '')
  const header = tarHeader(entry.name, content.length, entry.type, entry.link)
  return Buffer.concat([header, content, Buffer.alloc((512 - (content.length % 512)) % 512)])
}

/** The block before an entry's content. */
export function tarHeader(name: string, bytes: number, type = '0', link = ''): Buffer {
  const header = Buffer.alloc(512)
  header.write(name, 0, 100)
  header.write('0000644\0', 100)
  header.write('0000000\0', 108)
  header.write('0000000\0', 116)
  header.write(`${bytes.toString(8).padStart(11, '0')}\0`, 124)
  header.write('00000000000\0', 136)
  header.write(' '.repeat(8), 148)
  header.write(type, 156)
  header.write(link, 157, 100)
  header.write('ustar\x0000', 257)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return header
}
