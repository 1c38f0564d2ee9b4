import type { MethodDefinition, ServiceDefinition } from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import { protoDir } from '../package-info.ts'

const INFERENCE = 'org.pytorch.serve.grpc.inference.InferenceAPIsService'
const MANAGEMENT = 'org.pytorch.serve.grpc.management.ManagementAPIsService'

/** Both services as proto/*.proto define them. Messages keep the names of the files; absent fields are undefined. */
export function loadServices(): { inference: ServiceDefinition; management: ServiceDefinition } {
  const definitions = loadSync(['inference.proto', 'management.proto'], {
    keepCase: true,
    includeDirs: [protoDir],
  })
  return {
    inference: withEncodedResponses(definitions[INFERENCE] as ServiceDefinition),
    management: definitions[MANAGEMENT] as ServiceDefinition,
  }
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
