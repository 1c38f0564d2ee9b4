import { createServer, type AddressInfo } from 'node:net'
import { testAdmission } from '../../support/admission.ts'
import { once } from 'node:events'
import { describe, expect, test } from '@jest/globals'
import { status as Status } from '@grpc/grpc-js'
import { createGrpcServers } from '../../../frontend/dialects/grpc-servers.ts'
import { ServeError } from '../../../common/errors.ts'
import { call, readAll } from '../../support/grpc-clients.ts'
import { FakeWorkflows } from '../../support/fake-workflows.ts'
import { freePorts } from '../../support/ports.ts'
import { FakeModels } from './fake-models.ts'
import {
  failure,
  FakeAuthorizer,
  predictWith,
  REQUEST,
  SETTINGS,
  startGrpc,
  streamWith,
} from './start-grpc.ts'

const log = { debug: () => undefined, error: () => undefined }

function servers(settings: Partial<typeof SETTINGS>) {
  const deps = {
    models: new FakeModels(),
    workflows: new FakeWorkflows(),
    authorizer: new FakeAuthorizer(),
    log,
  }
  return createGrpcServers({ admission: testAdmission(), ...deps, settings: { ...SETTINGS, ...settings } })
}

const listenError = (settings: Partial<typeof SETTINGS>): Promise<unknown> =>
  servers(settings)
    .listen()
    .then(
      () => undefined,
      (error: unknown) => error,
    )

describe('listening', () => {
  test('on port 0 takes two free ports and says which', async () => {
    const both = servers({ grpcManagementAddress: 'localhost' })
    const bound = await both.listen()
    const inference = bound.get('inference')!
    const management = bound.get('management')!
    expect(inference.host).toBe('127.0.0.1')
    expect(['127.0.0.1', '::1']).toContain(management.host)
    expect(new Set([0, inference.port, management.port]).size).toBe(3)
    await both.drain()
  })

  test('on a port that is taken fails with one clear line, and frees the other port', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { port } = taken.address() as AddressInfo
    const [free] = await freePorts(1)
    const error = await listenError({ grpcInferencePort: free!, grpcManagementPort: port })
    expect(error).toBeInstanceOf(ServeError)
    expect(error).toMatchObject({
      code: 'CONFIG',
      message: `The gRPC management listener cannot use 127.0.0.1:${port} (grpc_management_port): the address is already in use`,
    })
    const again = createServer().listen(free, '127.0.0.1')
    await once(again, 'listening')
    again.close()
    taken.close()
  })

  test.each([
    ['203.0.113.1', 'this machine does not have that address'],
    [`${'x'.repeat(64)}.invalid`, 'the host name is unknown'], // too long to ask a name server
  ])('on %s fails with one clear line', async (host, why) => {
    const error = await listenError({ grpcInferenceAddress: host })
    expect(error).toMatchObject({ code: 'CONFIG' })
    expect((error as Error).message).toMatch(/^The gRPC inference listener cannot use .*$/)
    expect((error as Error).message).toContain(why)
  })
})

describe('draining', () => {
  test('lets running streams finish and takes no new connection', async () => {
    const grpc = await startGrpc()
    const working = grpc.models.nextWork()
    const reading = readAll(streamWith(grpc, REQUEST))
    const work = await working
    work.respond('before', true)
    const drained = grpc.servers.drain()
    const refused = await failure(call(grpc.management, grpc.management.ListModels, {}))
    expect(refused.code).toBe(Status.UNAVAILABLE)
    work.respond('after', false)
    expect((await reading).messages).toHaveLength(2)
    await drained
    grpc.inference.close()
    grpc.management.close()
  })

  test('does not wait for a call that was refused, while its client stays connected', async () => {
    const grpc = await startGrpc()
    grpc.authorizer.enabled = true
    expect((await failure(predictWith(grpc, REQUEST))).code).toBe(Status.PERMISSION_DENIED)
    await grpc.servers.drain()
    grpc.inference.close()
    grpc.management.close()
  })

  test('is cut short by a forced shutdown', async () => {
    const grpc = await startGrpc()
    const working = grpc.models.nextWork()
    const reading = readAll(streamWith(grpc, REQUEST))
    const work = await working
    const drained = grpc.servers.drain()
    grpc.servers.forceShutdown()
    await drained
    expect(await work.abandoned).toBe('client left')
    expect((await reading).error).toBeDefined()
    grpc.inference.close()
    grpc.management.close()
  })

  test('the services are apart: neither port knows the other service', async () => {
    const grpc = await startGrpc()
    const inferencePath = grpc.inference.Ping.bind(grpc.management)
    const error = await failure(call(grpc.management, inferencePath, {}))
    expect(error.code).toBe(Status.UNIMPLEMENTED)
    expect((await predictWith(grpc, REQUEST)).prediction.toString()).toBe('ok')
    await grpc.close()
  })
})
