import { status as Status, type ServerDuplexStream, type UntypedServiceImplementation } from '@grpc/grpc-js'
import type { CallError, GrpcLog } from './call-error.ts'
import type { LoadedService } from './definitions.ts'
import { guarded } from './guarded.ts'
import { describeFiles, type FileDescriptor } from './file-descriptor.ts'

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
