import type { MessageTypeDefinition, PackageDefinition } from '@grpc/proto-loader'

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
