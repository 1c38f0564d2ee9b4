import { Client, credentials, status as Status } from '@grpc/grpc-js'
import { testAdmission } from '../../support/admission.ts'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { GrpcListenerKind } from '../../../frontend/dialects/grpc-dialect.ts'
import { createGrpcServers } from '../../../frontend/dialects/grpc-servers.ts'
import type { GrpcServers } from '../../../frontend/edge/grpc/server.ts'
import { FakeWorkflows } from '../../support/fake-workflows.ts'
import { FakeModels } from './fake-models.ts'
import { FakeAuthorizer, SETTINGS } from './start-grpc.ts'

let servers: GrpcServers<GrpcListenerKind>
let models: FakeModels
let ports: ReadonlyMap<GrpcListenerKind, { port: number }>

beforeEach(async () => {
  models = new FakeModels()
  servers = createGrpcServers({
    admission: testAdmission(),
    models,
    workflows: new FakeWorkflows(),
    authorizer: new FakeAuthorizer(),
    settings: { ...SETTINGS, openInferenceGrpcPort: 0 },
    log: { debug: () => undefined, error: () => undefined },
  })
  ports = await servers.listen()
})

afterEach(() => servers.drain())

/** The message as it is, which no client of protobuf would send. */
const asItIs = (message: Buffer): Buffer => message

async function failure(listener: GrpcListenerKind, path: string, latin1: string): Promise<unknown[]> {
  const client = new Client(`127.0.0.1:${ports.get(listener)!.port}`, credentials.createInsecure())
  const message = Buffer.from(latin1, 'latin1')
  try {
    return await new Promise((resolve, reject) => {
      if (!path.endsWith('StreamInfer')) {
        client.makeUnaryRequest(path, asItIs, asItIs, message, (error) => {
          if (error === null) reject(new Error('The call did not fail'))
          else resolve([error.code, error.details])
        })
        return
      }
      const stream = client.makeBidiStreamRequest(path, asItIs, asItIs)
      stream.on('error', (error: { code?: number; details?: string }) => resolve([error.code, error.details]))
      stream.write(message)
    })
  } finally {
    client.close()
  }
}

const OPEN = '/inference.GRPCInferenceService'
const TORCHSERVE = '/org.pytorch.serve.grpc'

describe('a string that is not UTF-8 is refused with its field', () => {
  const name = '\n\x02m\xe9'
  const parameter = '\n\x01m"\x08\n\x01p\x12\x03\x1a\x01\xff'
  test.each<[GrpcListenerKind, string, string, string]>([
    ['inference', `${TORCHSERVE}.inference.InferenceAPIsService/Predictions`, name, 'model_name'],
    ['inference', `${TORCHSERVE}.inference.InferenceAPIsService/StreamPredictions`, name, 'model_name'],
    ['management', `${TORCHSERVE}.management.ManagementAPIsService/DescribeModel`, name, 'model_name'],
    ['open-inference', `${OPEN}/ModelReady`, name, 'name'],
    ['open-inference', `${OPEN}/ModelInfer`, parameter, 'parameters.value.string_param'],
    ['open-inference', `${OPEN}/ModelStreamInfer`, parameter, 'parameters.value.string_param'],
  ])('%s %s', async (listener, path, message, field) => {
    const details = `The message cannot be read: ${field} is not valid UTF-8`
    const [code, said] = await failure(listener, path, message)
    expect([code, String(said).split('\n')[0]]).toEqual([Status.INVALID_ARGUMENT, details])
    expect(models.works).toHaveLength(0)
  })
})

test('bytes may be anything, also where a message is too large for one frame', async () => {
  models.onWork = (work) => work.respond('{"outputs":[]}')
  const client = new Client(`127.0.0.1:${ports.get('open-inference')!.port}`, credentials.createInsecure())
  const contents = Buffer.alloc(200_000, 0xff)
  // ModelInferRequest { model_name: "echo", raw_input_contents: [contents] } with one input of INT8.
  const input = Buffer.from('*\x0e\n\x01x\x12\x04INT8\x1a\x03\xc0\x9a\x0c', 'latin1')
  const head = Buffer.from(':\xc0\x9a\x0c', 'latin1')
  const message = Buffer.concat([Buffer.from('\n\x04echo'), input, head, contents])
  try {
    await new Promise<void>((resolve, reject) => {
      client.makeUnaryRequest(`${OPEN}/ModelInfer`, asItIs, asItIs, message, (error) => {
        if (error === null) resolve()
        else reject(error)
      })
    })
  } finally {
    client.close()
  }
  expect(models.works).toHaveLength(1)
})
