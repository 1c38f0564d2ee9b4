import { createRequire } from 'node:module'
import { anyClient, type Message } from './grpc-clients.ts'

/** protobufjs comes with proto-loader; a client of another make decodes descriptors with such a library. */
const require = createRequire(createRequire(import.meta.url).resolve('@grpc/proto-loader'))
export const { FileDescriptorProto } = require('protobufjs/ext/descriptor') as {
  FileDescriptorProto: { decode(bytes: Buffer): FileDescriptor; toObject(file: FileDescriptor): object }
}

export interface FileDescriptor {
  name: string
  package: string
  dependency: string[]
  service: { name: string; method: { name: string }[] }[]
}

type Stream = NodeJS.ReadWriteStream & AsyncIterable<Message>

/** Asks a gRPC listener's reflection service one question after the other on one stream. */
export async function askReflection(port: number, questions: Message[], version = 'v1'): Promise<Message[]> {
  const file = `grpc/reflection/${version}/reflection.proto`
  const client = anyClient(file, `grpc.reflection.${version}`, 'ServerReflection', port)
  const stream = (client['ServerReflectionInfo'] as unknown as () => Stream).call(client)
  const answers: Message[] = []
  const reading = (async () => {
    for await (const answer of stream) answers.push(answer)
  })()
  for (const question of questions) stream.write(question as unknown as string)
  stream.end()
  await reading.finally(() => client.close())
  return answers
}

/** The names in a `list_services_response`. */
export function serviceNames(answer: Message): string[] {
  return (answer['list_services_response'] as { service: { name: string }[] }).service.map(({ name }) => name)
}

/** The file in a `file_descriptor_response`. */
export function describedFile(answer: Message): FileDescriptor {
  const { file_descriptor_proto: files } = answer['file_descriptor_response'] as {
    file_descriptor_proto: Buffer[]
  }
  return FileDescriptorProto.decode(files[0]!)
}

/**
 * Every rpc of a listener as its reflection tells them: `/package.Service/Method`, by the full name of the
 * service.
 */
export async function reflectedRpcs(port: number): Promise<Map<string, string[]>> {
  const [list] = await askReflection(port, [{ list_services: '*' }])
  const names = serviceNames(list!)
  const files = await askReflection(
    port,
    names.map((name) => ({ file_containing_symbol: name })),
  )
  return new Map(
    names.map((name, index) => {
      const file = describedFile(files[index]!)
      const service = file.service.find((each) => `${file.package}.${each.name}` === name)
      if (service === undefined) throw new Error(`Reflection gave no file for ${name}`)
      return [name, service.method.map((method) => `/${name}/${method.name}`)]
    }),
  )
}
