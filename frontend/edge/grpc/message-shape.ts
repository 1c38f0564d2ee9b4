import type { MessageTypeDefinition, PackageDefinition } from '@grpc/proto-loader'

/** What the check of a message's size has to know of one field. */
export type FieldShape = MessageShape | 'numbers' | 'bytes'

/** The fields of a message by number. */
export type MessageShape = ReadonlyMap<number, FieldShape>

/** The parts of a DescriptorProto that count. */
interface Descriptor {
  readonly name: string
  readonly field: readonly { number: number; type: string; typeName: string }[]
  readonly nestedType: readonly Descriptor[]
}

const BYTES: ReadonlySet<string> = new Set(['TYPE_STRING', 'TYPE_BYTES'])

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
    const fields = descriptor.field.map(({ number, type, typeName }): [number, FieldShape] => {
      if (type === 'TYPE_MESSAGE') return [number, this.#shape(this.#find(typeName, scopes), scopes)]
      return [number, BYTES.has(type) ? 'bytes' : 'numbers']
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
