import { type ServerDuplexStream, status as Status, type UntypedServiceImplementation } from '@grpc/grpc-js'
import descriptor, {
  type IDescriptorProto,
  type IFieldDescriptorProto,
  type IFileDescriptorProto,
} from 'protobufjs/ext/descriptor/index.js'
import { type CallError, type GrpcLog, guarded } from './call-error.ts'
import type { LoadedService } from './definitions.ts'

/** A serialized FileDescriptorProto, and what has to be known of it. */
export interface FileDescriptor {
  readonly name: string
  readonly package: string
  readonly bytes: Buffer
}

/** What protobufjs writes of every file, and of every message. */
type File = IFileDescriptorProto & { name: string; package: string; messageType: Message[] }
interface Message extends IDescriptorProto {
  name: string
  nestedType: Message[]
  field: IFieldDescriptorProto[]
}

const { FileDescriptorProto } = descriptor

/**
 * Makes what protobufjs writes of a file and of those that it imports readable for all: it leaves the imports
 * out, names types from where they are used, and the entries of maps unlike protoc does. Go's runtime, and so
 * grpcurl, refuses that.
 */
export function describeFiles(serialized: readonly Buffer[]): FileDescriptor[] {
  const files = serialized.map((bytes) => FileDescriptorProto.decode(bytes) as unknown as File)
  const types = new Types()
  for (const file of files) {
    for (const message of file.messageType) nameMapEntries(message)
    types.add(file)
  }
  return files.map((file) => {
    file.dependency = types.useIn(file).map(({ name }) => name)
    const bytes = Buffer.from(FileDescriptorProto.encode(file).finish())
    return { name: file.name, package: file.package, bytes }
  })
}

/** The entry of the map `some_inputs` is `SomeInputsEntry`: descriptor.proto, `map_entry`. */
function nameMapEntries({ field, nestedType }: Message): void {
  for (const nested of nestedType) {
    if (nested.options?.mapEntry === true) {
      const map = field.find(({ typeName }) => typeName === nested.name)!
      const words = map.name!.split('_').filter((word) => word !== '')
      nested.name = `${words.map((word) => word[0]!.toUpperCase() + word.slice(1)).join('')}Entry`
      map.typeName = nested.name
    }
    nameMapEntries(nested)
  }
}

/** The messages and enums of several files. */
class Types {
  readonly #files = new Map<string, File>()

  add(file: File): void {
    this.#add(file, file.package, file)
  }

  /** Names all types that a file uses in full, and returns the other files that have them. */
  useIn(file: File): File[] {
    const used = new Set<File>()
    for (const message of file.messageType) this.#useIn(message, `${file.package}.${message.name}`, used)
    // Those of methods are named in full.
    for (const { inputType, outputType } of (file.service ?? []).flatMap(({ method }) => method ?? []))
      for (const type of [inputType, outputType]) used.add(this.#files.get(type!.slice(1))!)
    used.delete(file)
    return [...used]
  }

  #add({ messageType, nestedType, enumType = [] }: Partial<File & Message>, scope: string, file: File): void {
    for (const { name } of enumType) this.#files.set(`${scope}.${name}`, file)
    for (const message of messageType ?? nestedType ?? []) {
      this.#files.set(`${scope}.${message.name}`, file)
      this.#add(message, `${scope}.${message.name}`, file)
    }
  }

  #useIn({ field, nestedType }: Message, scope: string, used: Set<File>): void {
    for (const each of field) {
      if (!each.typeName) continue
      const name = this.#resolve(each.typeName, scope)
      each.typeName = `.${name}`
      used.add(this.#files.get(name)!)
    }
    for (const nested of nestedType) this.#useIn(nested, `${scope}.${nested.name}`, used)
  }

  /** The innermost type of that name around the scope, as protobuf's language guide says. */
  #resolve(name: string, scope: string): string {
    for (let around = scope; around !== ''; around = around.slice(0, Math.max(around.lastIndexOf('.'), 0)))
      if (this.#files.has(`${around}.${name}`)) return `${around}.${name}`
    if (this.#files.has(name)) return name
    throw new TypeError(`A file descriptor uses a type that no file has: ${name}`)
  }
}

/** ServerReflectionRequest as proto-loader decodes it: one of the texts is there. */
interface ReflectionRequest {
  host?: string
  file_by_filename?: string
  file_containing_symbol?: string
  file_containing_extension?: { containing_type?: string }
  all_extension_numbers_of_type?: string
  list_services?: string
}

type Stream = ServerDuplexStream<ReflectionRequest, object>

/**
 * Server reflection: tools learn from the server which services it has. Asks for no token, as the API
 * description of REST does not. One file stands for each package.
 */
export function reflectionService(
  services: readonly LoadedService[],
  log: GrpcLog,
): UntypedServiceImplementation {
  // Not before anybody asks: a start does not need them.
  let described: FileDescriptor[] | undefined
  const files = (): FileDescriptor[] => (described ??= filesOf(services))
  const symbols = new Set(services.flatMap((service) => service.symbols))
  const names = services.map(({ name }) => ({ name }))
  return {
    ServerReflectionInfo: (call: Stream) => {
      const take = (request: ReflectionRequest): void => {
        const reply = { valid_host: request.host ?? '', original_request: request, ...answer(request) }
        // A client that asks on without reading waits for what it has asked.
        if (call.write(reply)) return
        call.pause()
        call.once('drain', () => call.resume())
      }
      const fail = (error: CallError): void => void call.emit('error', error)
      call.on('data', guarded(log, fail, take))
      call.on('end', () => call.end())
    },
  }

  function answer(request: ReflectionRequest): object {
    if (request.list_services !== undefined) return { list_services_response: { service: names } }
    if (request.file_by_filename !== undefined) {
      const wanted = request.file_by_filename
      return found(files().find(({ name }) => name === wanted)) ?? missing(`file ${wanted}`)
    }
    if (request.file_containing_symbol !== undefined) {
      return bySymbol(request.file_containing_symbol)
    }
    return missing('extension: these services have none')
  }

  /**
   * A symbol may be a method, a field or a nested message of what is known; its package is the longest one
   * that it begins with.
   */
  function bySymbol(symbol: string): object {
    let known = symbol
    while (known !== '' && !symbols.has(known)) known = known.slice(0, Math.max(known.lastIndexOf('.'), 0))
    const within = files().filter((file) => known.startsWith(`${file.package}.`))
    within.sort((a, b) => b.package.length - a.package.length)
    return found(within[0]) ?? missing(`symbol ${symbol}`)
  }
}

function filesOf(services: readonly LoadedService[]): FileDescriptor[] {
  const files = new Map<string, FileDescriptor>()
  for (const { descriptors } of services) {
    for (const file of describeFiles(descriptors)) {
      const known = files.get(file.name)
      // google.protobuf holds what each service imports of it: the larger one knows more.
      if (known === undefined || known.bytes.byteLength < file.bytes.byteLength) files.set(file.name, file)
    }
  }
  return [...files.values()]
}

function found(file: FileDescriptor | undefined): object | undefined {
  return file && { file_descriptor_response: { file_descriptor_proto: [file.bytes] } }
}

function missing(what: string): object {
  return { error_response: { error_code: Status.NOT_FOUND, error_message: `There is no ${what}` } }
}
