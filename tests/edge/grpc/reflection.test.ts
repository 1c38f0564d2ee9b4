import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals'
import { testAdmission } from '../../support/admission.ts'
import { loadFileDescriptorSetFromObject } from '@grpc/proto-loader'
import { Server, status as Status } from '@grpc/grpc-js'
import type { Message } from '../../support/grpc-clients.ts'
import {
  askReflection,
  describedFile,
  FileDescriptorProto,
  reflectedRpcs,
  serviceNames,
  type FileDescriptor,
} from '../../support/reflection.ts'
import { createGrpcServers } from '../../../frontend/dialects/grpc-servers.ts'
import { SETTINGS, startGrpc, type RunningGrpc } from './start-grpc.ts'

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

beforeEach(async () => {
  grpc = await startGrpc({ openInferenceProtocol: true })
  grpc.authorizer.enabled = true
})

afterEach(async () => {
  await grpc.close()
})

async function fileOf(question: Message): Promise<FileDescriptor> {
  const [answer] = await askReflection(grpc.port, [question])
  expect(
    (answer!['file_descriptor_response'] as { file_descriptor_proto: Buffer[] }).file_descriptor_proto,
  ).toHaveLength(1)
  return describedFile(answer!)
}

describe('server reflection, without a token', () => {
  test.each(['v1', 'v1alpha'])('lists the services of the listener: %s', async (version) => {
    const [inference] = await askReflection(grpc.port, [{ list_services: '*' }], version)
    expect(serviceNames(inference!)).toEqual([INFERENCE, OPEN_INFERENCE, ...COMMON])
    const [management] = await askReflection(grpc.managementPort, [{ list_services: '' }], version)
    expect(serviceNames(management!)).toEqual([MANAGEMENT, ...COMMON])
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
    const answers = await askReflection(grpc.port, [
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

  test('tells every rpc that was added to a listener, and no other', async () => {
    const adding = jest.spyOn(Server.prototype, 'addService')
    const servers = createGrpcServers({
      admission: testAdmission(),
      models: grpc.models,
      workflows: grpc.workflows,
      authorizer: grpc.authorizer,
      settings: { ...SETTINGS, openInferenceProtocol: true, openInferenceGrpcPort: 0, tritonGrpcPort: 0 },
      log: { debug: () => undefined, error: () => undefined },
    })
    const added = new Map<unknown, string[]>()
    for (const [index, [definition]] of adding.mock.calls.entries()) {
      const listener: unknown = adding.mock.contexts[index]
      const paths = Object.values(definition).map(({ path }) => path)
      added.set(listener, [...(added.get(listener) ?? []), ...paths])
    }
    adding.mockRestore()
    const bound = await servers.listen()
    const told = []
    for (const { port } of bound.values()) told.push([...(await reflectedRpcs(port)).values()].flat())
    expect(told.map(sorted)).toEqual([...added.values()].map(sorted))
    await servers.drain()
  })
})

function sorted(values: string[]): string[] {
  return values.toSorted()
}
