/** A serialized FileDescriptorProto, and what has to be known of it. */
export interface FileDescriptor {
  readonly name: string
  readonly package: string
  readonly bytes: Buffer
}

const NAME_TAG = 0x0a
const PACKAGE_TAG = 0x12
const IMPORT_TAG = 0x1a
const MAX_SHORT = 0x7f

/**
 * Reads the first two fields, `name` and `package`, which protobufjs writes in this order; both are short.
 */
export function readDescriptor(bytes: Buffer): FileDescriptor {
  const name = shortText(bytes, 0, NAME_TAG)
  const packageName = shortText(bytes, 2 + Buffer.byteLength(name), PACKAGE_TAG)
  return { name, package: packageName, bytes }
}

/**
 * protobufjs leaves the imports out. A type of another package is named in full, or from where the two
 * packages part; so a file imports those packages whose names stand in it. A repeated field may stand
 * anywhere: the imports are put behind.
 */
export function withImports(file: FileDescriptor, all: readonly FileDescriptor[]): FileDescriptor {
  const imported = all.filter(
    (other) => other !== file && file.bytes.includes(`${relativeTo(file.package, other.package)}.`),
  )
  const fields = imported.flatMap(({ name }) => {
    const text = Buffer.from(name)
    return [Buffer.from([IMPORT_TAG, text.byteLength]), text]
  })
  return { ...file, bytes: Buffer.concat([file.bytes, ...fields]) }
}

function relativeTo(from: string, to: string): string {
  const ours = from.split('.')
  const theirs = to.split('.')
  while (theirs.length > 1 && theirs[0] === ours.shift()) theirs.shift()
  return theirs.join('.')
}

function shortText(bytes: Buffer, offset: number, tag: number): string {
  const length = bytes[offset + 1]
  if (bytes[offset] !== tag || length === undefined || length > MAX_SHORT) {
    throw new TypeError('A file descriptor begins unlike those of protobufjs')
  }
  return bytes.toString('utf8', offset + 2, offset + 2 + length)
}
