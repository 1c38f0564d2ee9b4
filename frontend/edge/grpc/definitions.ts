import type { MethodDefinition, ServiceDefinition } from '@grpc/grpc-js'
import { loadSync, type Options, type PackageDefinition } from '@grpc/proto-loader'
import { protoDir } from '../../package-info.ts'
import type { StreamShape } from '../../dialects/open-inference/grpc-shape.ts'
import { ownValue } from '../../../common/own-keys.ts'

const TORCHSERVE = 'org.pytorch.serve.grpc'
const INFERENCE = `${TORCHSERVE}.inference.InferenceAPIsService`
const MANAGEMENT = `${TORCHSERVE}.management.ManagementAPIsService`
const OPEN_INFERENCE = `${TORCHSERVE}.openinference.GRPCInferenceService`
const HEALTH = 'grpc.health.v1.Health'
const REFLECTION = 'grpc.reflection.v1.ServerReflection'
/** What older tools ask; its messages are those of v1. */
const REFLECTION_ALPHA = 'grpc.reflection.v1alpha.ServerReflection'

/** One service as a .proto file defines it. */
export interface LoadedService {
  /** Full name, with its package. */
  readonly name: string
  readonly definition: ServiceDefinition
  /** Serialized FileDescriptorProtos of its file and of those that it imports, one for each package. */
  readonly descriptors: readonly Buffer[]
  /** Full names of all services, messages and enums in these files. */
  readonly symbols: readonly string[]
}

/** The services that listeners may have; messages keep the names of the files, absent fields are undefined. */
export function loadServices() {
  const inference = load('inference.proto', INFERENCE)
  return {
    inference: { ...inference, definition: withEncodedResponses(inference.definition) },
    management: load('management.proto', MANAGEMENT),
    health: load('grpc/health/v1/health.proto', HEALTH),
    reflection: load('grpc/reflection/v1/reflection.proto', REFLECTION),
    reflectionAlpha: load('grpc/reflection/v1alpha/reflection.proto', REFLECTION_ALPHA),
  }
}

/** The Open Inference service: 64-bit integers are texts, absent lists are empty. */
export function loadOpenInference(): LoadedService {
  return load('open_inference_grpc.proto', OPEN_INFERENCE, { longs: String, arrays: true })
}

type InferenceV2Services = Readonly<Record<StreamShape, LoadedService & StreamEncoder>>

let inferenceV2: InferenceV2Services | undefined

/**
 * `inference.GRPCInferenceService` in both shapes: 64-bit integers are texts, absent lists are empty; what streams is encoded already.
 * Loaded once: every listener can answer in either.
 */
export function loadInferenceV2(): InferenceV2Services {
  inferenceV2 ??= { mlserver: loadShape('mlserver'), triton: loadShape('triton') }
  return inferenceV2
}

function loadShape(shape: StreamShape): LoadedService & StreamEncoder {
  const service = load(`inference/${shape}.proto`, 'inference.GRPCInferenceService', {
    longs: String,
    arrays: true,
  })
  const stream = service.definition['ModelStreamInfer']! as MethodDefinition<object, object>
  const definition = { ...service.definition, ModelStreamInfer: { ...stream, responseSerialize: asItIs } }
  return { ...service, definition: definition, encodeStreamed: stream.responseSerialize }
}

interface StreamEncoder {
  readonly encodeStreamed: (message: object) => Buffer
}

function load(file: string, name: string, options: Options = {}): LoadedService {
  const definitions = loadSync(file, { keepCase: true, includeDirs: [protoDir], ...options })
  return {
    name,
    definition: ownValue(definitions, name) as ServiceDefinition,
    descriptors: descriptorsOf(definitions),
    symbols: Object.keys(definitions),
  }
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

/** The service's handlers answer with messages that are encoded already (prediction-codec.ts). */
function withEncodedResponses(service: ServiceDefinition): ServiceDefinition {
  const encoded = Object.entries(service).map(
    ([name, method]): [string, MethodDefinition<object, Buffer>] => [
      name,
      { ...(method as MethodDefinition<object, Buffer>), responseSerialize: asItIs },
    ],
  )
  return Object.fromEntries(encoded)
}

function asItIs(message: Buffer): Buffer {
  return message
}
