import type { MethodDefinition, ServiceDefinition, UntypedServiceImplementation } from '@grpc/grpc-js'
import {
  loadSync,
  type MessageTypeDefinition,
  type Options,
  type PackageDefinition,
} from '@grpc/proto-loader'
import type { Scope } from '../../auth/principal.ts'
import { protoDir } from '../../package-info.ts'
import type { ToCallError } from './call-error.ts'
import { type MessageShape, MessageShapes } from './message-check.ts'

/** What callers and tools can know of a service without calling it. */
export interface ServiceFacts {
  readonly definition: LoadedService
  /** The token that an rpc asks for; undefined: whoever can connect may call it. */
  token(rpc: string): Scope | undefined
  /** Its responses are encoded before they are written, so that those which wait can leave in one write. */
  readonly eager?: boolean
  /** For calls that are refused before the implementation hears of them. */
  readonly toCallError: ToCallError
}

/** A service that a listener has. */
export interface GrpcService extends ServiceFacts {
  /** Handlers by rpc name. Tokens are checked before they are called. */
  readonly implementation: UntypedServiceImplementation
}

/** One rpc of a service. */
export interface Rpc {
  /** `/package.Service/Method` */
  readonly path: string
  readonly token: Scope | undefined
  /** Whether the client may send any number of messages. */
  readonly isStream: boolean
  readonly toCallError: ToCallError
  readonly request: MessageShape
}

/** Every rpc of some services: for the gate, and for tests that walk them all. */
export function rpcsOf(services: readonly ServiceFacts[]): Rpc[] {
  return services.flatMap(({ definition, token, toCallError }) =>
    Object.entries(definition.definition).map(([name, { path, requestStream }]) => {
      const request = definition.requests.get(name)!
      return { path, token: token(name), isStream: requestStream, toCallError, request }
    }),
  )
}

/** One service as a .proto file defines it. */
export interface LoadedService {
  /** Full name, with its package. */
  readonly name: string
  readonly definition: ServiceDefinition
  /** Serialized FileDescriptorProtos of its file and of those that it imports, one for each package. */
  readonly descriptors: readonly Buffer[]
  /** Full names of all services, messages and enums in these files. */
  readonly symbols: readonly string[]
  /** What the requests of each rpc consist of. */
  readonly requests: ReadonlyMap<string, MessageShape>
}

/** A method as proto-loader makes it. */
interface ProtoMethod {
  readonly requestType: MessageTypeDefinition<object, object>
}

interface LoadOptions {
  /**
   * How proto-loader decodes messages. Absent fields are undefined and names those of the file, whatever is
   * said.
   */
  readonly decode?: Options
  /** Folder of the file and its imports. Default: proto/ of this package. */
  readonly folder?: string
}

/** Reads a service of a .proto file. @throws Error when there is no such file or service */
export function loadService(
  file: string,
  name: string,
  { decode, folder = protoDir }: LoadOptions = {},
): LoadedService {
  const definitions = loadSync(file, { ...decode, keepCase: true, includeDirs: [folder] })
  const definition = new Map(Object.entries(definitions)).get(name)
  if (definition === undefined || 'format' in definition) throw new Error(`${file} has no service ${name}`)
  return {
    name,
    definition,
    descriptors: descriptorsOf(definitions),
    symbols: Object.keys(definitions),
    requests: requestsOf(definition, new MessageShapes(definitions)),
  }
}

function requestsOf(definition: ServiceDefinition, shapes: MessageShapes): ReadonlyMap<string, MessageShape> {
  const methods = Object.entries(definition as unknown as Record<string, ProtoMethod>)
  return new Map(methods.map(([rpc, { requestType }]) => [rpc, shapes.of(requestType)]))
}

/**
 * The same service that reads and writes the messages of some rpcs as rpcs of another one does.
 * @param rpcs names of rpcs, each with that of its model in `other`
 */
export function withMessagesOf(
  service: LoadedService,
  other: LoadedService,
  rpcs: ReadonlyMap<string, string>,
): LoadedService {
  const models = new Map(Object.entries(other.definition))
  const methods = Object.entries(service.definition).map(([name, method]) => {
    const model = models.get(rpcs.get(name) ?? '')
    if (model === undefined) return [name, method] as const
    const { requestDeserialize, responseSerialize } = model
    return [name, { ...method, requestDeserialize, responseSerialize }] as const
  })
  const shapes = [...rpcs].map(([name, model]) => [name, other.requests.get(model)!] as const)
  const requests = new Map([...service.requests, ...shapes])
  return { ...service, definition: Object.fromEntries(methods), requests }
}

/** Makes of a response the bytes of its message. */
export type Encode = (message: object) => Buffer

/**
 * The same service whose handlers answer some rpcs with messages that are encoded already. Absent: all of
 * them.
 */
export function withEncodedResponses(service: LoadedService, rpcs?: readonly string[]): LoadedService {
  const methods = Object.entries(service.definition).map(([rpc, method]) => {
    const isEncoded = rpcs === undefined || rpcs.includes(rpc)
    return [rpc, isEncoded ? { ...method, responseSerialize: asItIs } : method] as const
  })
  return { ...service, definition: Object.fromEntries(methods) }
}

/** How the responses of an rpc become bytes. @throws Error when the service has no such rpc */
export function encoderOf({ name, definition }: LoadedService, rpc: string): Encode {
  const method = new Map(Object.entries(definition)).get(rpc) as MethodDefinition<object, object> | undefined
  if (method === undefined) throw new Error(`${name} has no rpc ${rpc}`)
  return method.responseSerialize
}

/** proto-loader hangs all of them on each message. */
function descriptorsOf(definitions: PackageDefinition): Buffer[] {
  for (const each of Object.values(definitions)) {
    if ('fileDescriptorProtos' in each && Array.isArray(each.fileDescriptorProtos)) {
      return each.fileDescriptorProtos
    }
  }
  return []
}

function asItIs(message: Buffer): Buffer {
  return message
}
