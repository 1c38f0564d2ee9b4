import { deflateRawSync, gzipSync } from 'node:zlib'
import { crc32, signature, tarHeader } from '../model-archiver/archives-by-hand.ts'

/** Archives that are small on disk and expensive for naive readers, one function per kind. */

const MIB = 1024 * 1024
const END = Buffer.alloc(1024)

/** A good tar, then zeros after its end, `bytes` of them: 64 MiB become 65 KB. */
export function zerosAfterTheEnd(bytes = 64 * MIB): Buffer {
  return gzipSync(Buffer.concat([tarFile('m/a.txt', Buffer.from('a')), END, Buffer.alloc(bytes)]))
}

/** The tar's two blocks of zeros first, then zeros, then an entry. */
export function zerosBeforeTheEntries(bytes = 64 * MIB): Buffer {
  return gzipSync(Buffer.concat([Buffer.alloc(bytes), tarFile('m/a.txt', Buffer.from('a')), END]))
}

/** One extended header of `bytes`, of lines that each set the path anew. */
export function longPaxHeader(bytes = 4 * MIB): Buffer {
  return gzipSync(Buffer.concat([paxHeader(bytes), tarFile('m/a.txt', Buffer.from('a')), END]))
}

/**
 * As many extended headers as make `bytes`, each just below node-tar's limit of a megabyte, before one entry.
 */
export function manyPaxHeaders(bytes = 4 * MIB, each = 1000 * 1000): Buffer {
  const headers = Array.from({ length: Math.ceil(bytes / each) }, () => paxHeader(each))
  return gzipSync(Buffer.concat([...headers, tarFile('m/a.txt', Buffer.from('a')), END]))
}

/** A file of zeros, `bytes` of them. */
export function tarOfZeros(bytes: number): Buffer {
  return gzipSync(Buffer.concat([tarFile('m/zeros.bin', Buffer.alloc(bytes)), END]))
}

/** A header that declares far more than follows. */
export function tarThatDeclares(bytes: number): Buffer {
  return gzipSync(Buffer.concat([tarHeader('m/large.bin', bytes), Buffer.alloc(MIB), END]))
}

/** A GNU sparse file: a hole of that size. */
export function sparseTar(bytes: number): Buffer {
  return gzipSync(Buffer.concat([tarHeader('m/sparse.bin', bytes, 'S'), END]))
}

export function tarOfFolders(count: number, depth: number): Buffer {
  const files = Array.from({ length: count }, (_, n) => {
    const folders = Array.from({ length: depth }, () => n.toString(36)).join('/')
    return tarFile(`m/${folders}/f`, Buffer.alloc(0))
  })
  return gzipSync(Buffer.concat([...files, END]))
}

export function tarOfFiles(count: number): Buffer {
  const files = Array.from({ length: count }, (_, n) => tarFile(`m/${n}`, Buffer.alloc(0)))
  return gzipSync(Buffer.concat([...files, END]))
}

/**
 * Entries with overlapping compressed contents, as in "A better zip bomb" (David Fifield, 2019): each quotes
 * the local header of the next one as a stored block and continues with its content, down to one kernel of
 * `bytes` zeros that all of them unpack. Checksums are valid.
 */
export function overlappingZip(count: number, bytes: number): Buffer {
  let content: Buffer = Buffer.alloc(bytes)
  let data: Buffer = deflateRawSync(content, { level: 9 })
  const entries: { name: string; size: number; sum: number; packed: number; at: number }[] = []
  for (let n = count - 1; n >= 0; n--) {
    const name = `f${n}`
    const entry = { name, size: content.length, sum: crc32(content), packed: data.length, at: 0 }
    const local = localHeader(name, entry.packed, entry.size, entry.sum)
    entries.push({ ...entry, at: data.length + local.length })
    if (n === 0) data = Buffer.concat([local, data])
    else {
      data = Buffer.concat([storedBlock(local.length), local, data])
      content = Buffer.concat([local, content])
    }
  }
  const records = entries.map(({ name, packed, size, sum, at }) =>
    centralRecord(name, packed, size, sum, data.length - at),
  )
  return zipOf([data], records, data.length)
}

/** Entries whose central records all point at one local entry. */
export function sharedEntryZip(count: number, bytes: number): Buffer {
  const data = deflateRawSync(Buffer.alloc(bytes), { level: 9 })
  const sum = crc32(Buffer.alloc(bytes))
  const local = Buffer.concat([localHeader('f', data.length, bytes, sum), data])
  const records = Array.from({ length: count }, (_, n) => centralRecord(`f${n}`, data.length, bytes, sum, 0))
  return zipOf([local], records, local.length)
}

/** Central records only: many tiny files that share nothing but their smallness. */
export function zipOfFiles(count: number): Buffer {
  const locals: Buffer[] = []
  const records: Buffer[] = []
  let offset = 0
  for (let n = 0; n < count; n++) {
    const local = Buffer.concat([localHeader(`f${n}`, 2, 0, 0), Buffer.from([3, 0])])
    locals.push(local)
    records.push(centralRecord(`f${n}`, 2, 0, 0, offset))
    offset += local.length
  }
  return zipOf(locals, records, offset)
}

/** The head of a deflate block that is stored as it is, and not the last. */
function storedBlock(length: number): Buffer {
  const head = Buffer.alloc(5)
  head.writeUInt16LE(length, 1)
  head.writeUInt16LE(~length & 0xffff, 3)
  return head
}

function localHeader(name: string, packed: number, size: number, sum: number): Buffer {
  return Buffer.concat([signature(0x04034b50), fields(name, packed, size, sum), Buffer.from(name)])
}

function centralRecord(name: string, packed: number, size: number, sum: number, offset: number): Buffer {
  const rest = Buffer.alloc(14)
  rest.writeUInt32LE((0o100644 << 16) >>> 0, 6)
  rest.writeUInt32LE(offset, 10)
  const head = Buffer.concat([signature(0x02014b50), Buffer.from([20, 3]), fields(name, packed, size, sum)])
  return Buffer.concat([head, rest, Buffer.from(name)])
}

function fields(name: string, packed: number, size: number, sum: number): Buffer {
  const bytes = Buffer.alloc(26)
  bytes.writeUInt16LE(20, 0)
  bytes.writeUInt16LE(8, 4)
  bytes.writeUInt32LE(sum, 10)
  bytes.writeUInt32LE(packed, 14)
  bytes.writeUInt32LE(size, 18)
  bytes.writeUInt16LE(name.length, 22)
  return bytes
}

function zipOf(locals: Buffer[], records: Buffer[], offset: number): Buffer {
  const directory = Buffer.concat(records)
  const end = Buffer.alloc(18)
  end.writeUInt16LE(records.length, 4)
  end.writeUInt16LE(records.length, 6)
  end.writeUInt32LE(directory.length, 8)
  end.writeUInt32LE(offset, 12)
  return Buffer.concat([...locals, directory, signature(0x06054b50), end])
}

function tarFile(name: string, content: Buffer): Buffer {
  return Buffer.concat([tarHeader(name, content.length), content, padding(content.length)])
}

function paxHeader(bytes: number): Buffer {
  const line = '17 path=m/a/b.txt\n'
  const content = Buffer.from(line.repeat(Math.floor(bytes / line.length)))
  return Buffer.concat([tarHeader('m/pax', content.length, 'x'), content, padding(content.length)])
}

function padding(length: number): Buffer {
  return Buffer.alloc((512 - (length % 512)) % 512)
}
