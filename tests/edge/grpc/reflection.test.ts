import { createRequire } from 'node:module'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { loadFileDescriptorSetFromObject } from '@grpc/proto-loader'
import { status as Status, type Client } from '@grpc/grpc-js'
import { anyClient, type Message } from '../../support/grpc-clients.ts'
import { startGrpc, type RunningGrpc } from './start-grpc.ts'

/** protobufjs comes with proto-loader; a client of another make decodes descriptors with such a library. */
const require = createRequire(createRequire(import.meta.url).resolve('@grpc/proto-loader'))
const { FileDescriptorProto } = require('protobufjs/ext/descriptor') as {
  FileDescriptorProto: { decode(bytes: Buffer): FileDescriptor; toObject(file: FileDescriptor): object }
}

interface FileDescriptor {
  name: string
  package: string
  dependency: string[]
  service: { name: string }[]
}

const TORCHSERVE = 'org.pytorch.serve.grpc'
const INFERENCE = `${TORCHSERVE}.inference.InferenceAPIsService`
const MANAGEMENT = `${TORCHSERVE}.management.ManagementAPIsService`
const OPEN_INFERENCE = `${TORCHSERVE}.openinference.GRPCInferenceService`
const COMMON = [
  'grpc.health.v1.Health',
  'grpc.reflection.v1.ServerReflection',
  'grpc.reflection.v1alpha.ServerReflection',
]

let grpc: RunningGrpc
const clients: Client[] = []

beforeEach(async () => {
  grpc = await startGrpc({ openInferenceProtocol: true })
  grpc.authorizer.enabled = true
})

afterEach(async () => {
  for (const client of clients.splice(0)) client.close()
  await grpc.close()
})

/** Asks one question after the other on one stream. */
async function ask(questions: Message[], { version = 'v1', port = grpc.port } = {}): Promise<Message[]> {
  const file = `grpc/reflection/${version}/reflection.proto`
  const client = anyClient(file, `grpc.reflection.${version}`, 'ServerReflection', port)
  clients.push(client)
  const stream = (
    client['ServerReflectionInfo'] as unknown as () => NodeJS.ReadWriteStream & AsyncIterable<Message>
  ).call(client)
  const answers: Message[] = []
  const reading = (async () => {
    for await (const answer of stream) answers.push(answer)
  })()
  for (const question of questions) stream.write(question as unknown as string)
  stream.end()
  await reading
  return answers
}

async function fileOf(question: Message): Promise<FileDescriptor> {
  const [answer] = await ask([question])
  const { file_descriptor_proto: files } = answer!['file_descriptor_response'] as {
    file_descriptor_proto: Buffer[]
  }
  expect(files).toHaveLength(1)
  return FileDescriptorProto.decode(files[0]!)
}

function services(answer: Message): string[] {
  return (answer['list_services_response'] as { service: { name: string }[] }).service.map(({ name }) => name)
}

describe('server reflection, without a token', () => {
  test.each(['v1', 'v1alpha'])('lists the services of the listener: %s', async (version) => {
    const [inference] = await ask([{ list_services: '*' }], { version })
    expect(services(inference!)).toEqual([INFERENCE, OPEN_INFERENCE, ...COMMON])
    const [management] = await ask([{ list_services: '' }], { version, port: grpc.managementPort })
    expect(services(management!)).toEqual([MANAGEMENT, ...COMMON])
  })

  test.each([
    INFERENCE,
    `${INFERENCE}.Predictions`,
    `${TORCHSERVE}.inference.PredictionResponse`,
    `${TORCHSERVE}.inference.PredictionResponse.status`,
  ])('finds the file of %s', async (symbol) => {
    const file = await fileOf({ file_containing_symbol: symbol })
    expect(file.package).toBe(`${TORCHSERVE}.inference`)
    expect(file.service.map(({ name }) => name)).toEqual(['InferenceAPIsService'])
    expect(file.dependency.sort()).toEqual(['google_protobuf.proto', 'google_rpc.proto'])
  })

  test.each([INFERENCE, OPEN_INFERENCE, ...COMMON])(
    'a client can build %s from what it is told',
    async (symbol) => {
      const known = new Map<string, FileDescriptor>()
      const add = async (question: Message): Promise<void> => {
        const file = await fileOf(question)
        if (known.has(file.name)) return
        known.set(file.name, file)
        for (const name of file.dependency) await add({ file_by_filename: name })
      }
      await add({ file_containing_symbol: symbol })
      const set = { file: [...known.values()].map((file) => FileDescriptorProto.toObject(file)) }
      expect(Object.keys(loadFileDescriptorSetFromObject(set))).toContain(symbol)
    },
  )

  test('says what it does not know, and goes on', async () => {
    const answers = await ask([
      { file_containing_symbol: 'no.such.Thing' },
      { file_containing_symbol: '' },
      { file_by_filename: 'no.proto' },
      { file_containing_extension: { containing_type: INFERENCE, extension_number: 1 } },
      { all_extension_numbers_of_type: INFERENCE },
      { host: 'me', list_services: '' },
    ])
    const codes = answers.map(
      (answer) => (answer['error_response'] as { error_code: number } | undefined)?.error_code,
    )
    expect(codes).toEqual([...Array<number>(5).fill(Status.NOT_FOUND), undefined])
    expect(answers[5]).toMatchObject({ valid_host: 'me', original_request: { host: 'me' } })
  })
})
