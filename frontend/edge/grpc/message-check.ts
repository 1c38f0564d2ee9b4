import { isUtf8 } from 'node:buffer'
import type { MessageTypeDefinition, PackageDefinition } from '@grpc/proto-loader'
import { PREFIX_BYTES } from './message-bytes.ts'

/** What the check of a message has to know of one field. */
export interface FieldShape {
  readonly name: string
  readonly type: MessageShape | 'numbers' | 'bytes' | 'text'
}

/** The fields of a message by number. */
export type MessageShape = ReadonlyMap<number, FieldShape>

/** The parts of a DescriptorProto that count. */
interface Descriptor {
  readonly name: string
  readonly field: readonly { name: string; number: number; type: string; typeName: string }[]
  readonly nestedType: readonly Descriptor[]
}

const LONG_TYPES: ReadonlyMap<string, 'bytes' | 'text'> = new Map([
  ['TYPE_BYTES', 'bytes'],
  ['TYPE_STRING', 'text'],
])

/** Reads the shapes of messages from the definitions of their file. They have no cycles. */
export class MessageShapes {
  readonly #named = new Map<string, Descriptor>()
  readonly #known = new Map<Descriptor, MessageShape>()

  constructor(definitions: PackageDefinition) {
    for (const each of Object.values(definitions)) {
      if (each.format === 'Protocol Buffer 3 DescriptorProto') {
        const descriptor = each.type as Descriptor
        this.#named.set(descriptor.name, descriptor)
      }
    }
  }

  /** @throws Error when a field has a type that the file does not contain */
  of({ type }: Pick<MessageTypeDefinition<object, object>, 'type'>): MessageShape {
    return this.#shape(type as Descriptor, [])
  }

  #shape(descriptor: Descriptor, outer: readonly Descriptor[]): MessageShape {
    const known = this.#known.get(descriptor)
    if (known !== undefined) return known
    const scopes = [descriptor, ...outer]
    const fields = descriptor.field.map(({ name, number, type, typeName }): [number, FieldShape] => {
      if (type === 'TYPE_MESSAGE')
        return [number, { name, type: this.#shape(this.#find(typeName, scopes), scopes) }]
      return [number, { name, type: LONG_TYPES.get(type) ?? 'numbers' }]
    })
    const shape = new Map(fields)
    this.#known.set(descriptor, shape)
    return shape
  }

  /** protobufjs names a type from where the packages part. */
  #find(typeName: string, scopes: readonly Descriptor[]): Descriptor {
    const name = typeName.slice(typeName.lastIndexOf('.') + 1)
    const nested = scopes.flatMap(({ nestedType }) => nestedType).find((each) => each.name === name)
    const found = nested ?? this.#named.get(name)
    if (found === undefined) throw new Error(`The message ${typeName} is not defined`)
    return found
  }
}

/** What a field counts: the objects for it take as much as five numbers. */
const FIELD_COST = 5
/** Strings up to so many bytes are looked at one by one. */
const SHORT_BYTES = 64
/** Bytes of the longest number on the wire. */
const MAX_VARINT_BYTES = 10

/** Wire types (protobuf's encoding specification). */
const VARINT = 0
const FIXED_64 = 1
const LENGTH = 2
const GROUP_START = 3
const GROUP_END = 4
const FIXED_32 = 5

/** Why a message is refused: it has too many elements, or the string at this path is not UTF-8. */
export type MessageFault = 'elements' | { readonly field: string }

/**
 * Checks a message before it is decoded. A field of two bytes takes hundreds of bytes of memory, so each
 * counts five, in messages within it too, and each byte of packed numbers one; the bytes of strings count
 * nothing. protobufjs would replace bytes of a string that are not UTF-8. What is no message ends the check:
 * the decoder refuses it.
 * @param parts of the message with its prefix
 */
export function messageFault(
  parts: readonly Buffer[],
  shape: MessageShape,
  maxElements: number,
): MessageFault | undefined {
  let size = 0
  for (const part of parts) size += part.length
  const bytes = new PartsReader(parts)
  bytes.skip(PREFIX_BYTES)
  return faultIn(bytes, size, shape, { left: maxElements })
}

function faultIn(
  bytes: PartsReader,
  end: number,
  shape: MessageShape,
  count: { left: number },
): MessageFault | undefined {
  // None of our messages has groups: the decoder skips what is in them.
  let groups = 0
  while (bytes.at < end) {
    const tag = bytes.varint()
    const field = groups > 0 ? undefined : shape.get(Math.floor(tag / 8))
    count.left -= FIELD_COST
    if (count.left < 0) return 'elements'
    switch (tag % 8) {
      case VARINT:
        bytes.varint()
        break
      case FIXED_64:
        bytes.skip(8)
        break
      case FIXED_32:
        bytes.skip(4)
        break
      case LENGTH: {
        const length = Math.min(bytes.varint(), Math.max(end - bytes.at, 0))
        if (typeof field?.type === 'object') {
          const fault = faultIn(bytes, bytes.at + length, field.type, count)
          if (fault !== undefined)
            return fault === 'elements' ? fault : { field: `${field.name}.${fault.field}` }
        } else if (field?.type === 'text') {
          if (!bytes.skipText(length)) return { field: field.name }
        } else {
          if (field?.type === 'numbers') count.left -= length
          bytes.skip(length)
        }
        break
      }
      case GROUP_START:
        groups += 1
        break
      case GROUP_END:
        if (groups === 0) return undefined
        groups -= 1
        break
      default:
        return undefined
    }
  }
  return count.left < 0 ? 'elements' : undefined
}

/** Reads a message that lies in several buffers, without joining them. */
class PartsReader {
  readonly #parts: readonly Buffer[]
  #index = 0
  #offset = 0
  /** Position in the whole. */
  at = 0

  constructor(parts: readonly Buffer[]) {
    this.#parts = parts
  }

  skip(length: number): void {
    this.at += length
    let offset = this.#offset + length
    let part = this.#parts[this.#index]
    while (part !== undefined && offset >= part.length) {
      offset -= part.length
      this.#index += 1
      part = this.#parts[this.#index]
    }
    this.#offset = offset
  }

  /** False: the bytes are not UTF-8. */
  skipText(length: number): boolean {
    const part = this.#parts[this.#index]
    // Most strings are short and ASCII: the call of isUtf8, and a Buffer for it, take longer than they.
    if (part !== undefined && length <= SHORT_BYTES && this.#offset + length <= part.length) {
      const end = this.#offset + length
      let at = this.#offset
      while (at < end && part[at]! < 0x80) at += 1
      if (at === end) {
        this.skip(length)
        return true
      }
    }
    return isUtf8(this.#take(length))
  }

  /** A number, inexact from 2^53 on. */
  varint(): number {
    let value = 0
    for (let i = 0; i < MAX_VARINT_BYTES; i += 1) {
      const byte = this.#parts[this.#index]?.[this.#offset] ?? 0
      this.skip(1)
      value += (byte & 0x7f) * 2 ** (7 * i)
      if (byte < 0x80) break
    }
    return value
  }

  /** The next bytes, joined. */
  #take(length: number): Buffer {
    const pieces: Buffer[] = []
    for (let left = length, part = this.#parts[this.#index]; left > 0 && part !== undefined;) {
      const piece = part.subarray(this.#offset, this.#offset + left)
      pieces.push(piece)
      this.skip(piece.length)
      left -= piece.length
      part = this.#parts[this.#index]
    }
    return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces)
  }
}
