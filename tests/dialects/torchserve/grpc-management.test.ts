import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { status as Status } from '@grpc/grpc-js'
import { ServeError, type ErrorCode } from '../../../common/errors.ts'
import { call } from '../../support/grpc-clients.ts'
import { failure, startGrpc, token, type RunningGrpc } from '../../edge/grpc/start-grpc.ts'

const RPCS = [
  'DescribeModel',
  'ListModels',
  'RegisterModel',
  'ScaleWorker',
  'SetDefault',
  'UnregisterModel',
] as const
type Rpc = (typeof RPCS)[number]

/** A request that each rpc accepts. */
const REQUESTS: Record<Rpc, Record<string, unknown>> = {
  DescribeModel: { model_name: 'echo' },
  ListModels: {},
  RegisterModel: { url: 'echo.mar' },
  ScaleWorker: { model_name: 'echo' },
  SetDefault: { model_name: 'echo', model_version: '2.0' },
  UnregisterModel: { model_name: 'echo' },
}

let grpc: RunningGrpc

beforeEach(async () => {
  grpc = await startGrpc()
})

afterEach(() => grpc.close())

const manage = (rpc: Rpc, request: Record<string, unknown> = REQUESTS[rpc], ...options: unknown[]) =>
  call(grpc.management, grpc.management[rpc], request, ...options)

describe('RegisterModel', () => {
  test('leaves to the defaults what is not set, and is asynchronous', async () => {
    expect((await manage('RegisterModel')).msg).toBe('Processing worker updates...')
    expect(grpc.models.asked).toEqual([
      [
        'register',
        {
          url: 'echo.mar',
          modelName: undefined,
          handler: undefined,
          runtime: undefined,
          batchSize: undefined,
          maxBatchDelay: undefined,
          responseTimeout: undefined,
          startupTimeout: undefined,
          initialWorkers: undefined,
          synchronous: false,
          s3SseKms: false,
        },
      ],
    ])
  })

  test('passes on what is set; numbers below one are not', async () => {
    await manage('RegisterModel', {
      url: 'a.mar',
      model_name: 'größe',
      handler: 'h:f',
      runtime: 'node',
      batch_size: 4,
      max_batch_delay: 20,
      response_timeout: -1,
      startup_timeout: 30,
      initial_workers: 2,
      synchronous: true,
      s3_sse_kms: true,
    })
    expect(grpc.models.asked[0]![1]).toEqual({
      url: 'a.mar',
      modelName: 'größe',
      handler: 'h:f',
      runtime: 'node',
      batchSize: 4,
      maxBatchDelay: 20,
      responseTimeout: undefined,
      startupTimeout: 30,
      initialWorkers: 2,
      synchronous: true,
      s3SseKms: true,
    })
  })

  test('needs a url', async () => {
    const error = await failure(manage('RegisterModel', { model_name: 'a' }))
    expect([error.code, error.details]).toEqual([
      Status.INVALID_ARGUMENT,
      'Parameter url is required.\norg.pytorch.serve.http.BadRequestException',
    ])
  })
})

describe('ScaleWorker', () => {
  test.each([
    [{}, undefined, undefined],
    [{ min_worker: 3 }, 3, undefined],
    [{ min_worker: 2, max_worker: 4, synchronous: true }, 2, 4],
    [{ min_worker: 0, max_worker: 0 }, 0, 0],
    [{ min_worker: -1, max_worker: -5 }, undefined, undefined],
  ])('%j', async (request, minWorker, maxWorker) => {
    await manage('ScaleWorker', { model_name: 'echo', ...request })
    const synchronous = 'synchronous' in request
    expect(grpc.models.asked).toEqual([
      ['scale', { modelName: 'echo', modelVersion: undefined, minWorker, maxWorker, synchronous }],
    ])
  })
})

test('SetDefault and UnregisterModel pass on name and version', async () => {
  await manage('SetDefault')
  await manage('UnregisterModel')
  await manage('UnregisterModel', { model_name: 'echo', model_version: '1.0' })
  expect(grpc.models.asked).toEqual([
    ['setDefault', 'echo', '2.0'],
    ['unregister', 'echo', undefined],
    ['unregister', 'echo', '1.0'],
  ])
})

test("UnregisterModel without a name is answered with TorchServe's sentence", async () => {
  const error = await failure(manage('UnregisterModel', {}))
  expect([error.code, error.details.split('\n')[0]]).toEqual([
    Status.INVALID_ARGUMENT,
    'Parameter url is required.',
  ])
  expect(grpc.models.asked).toEqual([])
})

test('ListModels answers pretty JSON; without a limit it asks for the default, not for none', async () => {
  const { msg } = await manage('ListModels')
  expect(msg).toBe(
    '{\n  "models": [\n    {\n      "modelName": "echo",\n      "modelUrl": "echo.mar"\n    }\n  ]\n}',
  )
  await manage('ListModels', { limit: 5, next_page_token: 10 })
  expect(grpc.models.asked).toEqual([
    ['list', undefined, undefined],
    ['list', 5, 10],
  ])
})

test('DescribeModel answers the pretty JSON array', async () => {
  const { msg } = await manage('DescribeModel', {
    model_name: 'größe',
    model_version: 'all',
    customized: true,
  })
  expect(JSON.parse(msg)).toMatchObject([
    { modelName: 'größe', modelVersion: '1.0' },
    { modelVersion: '2.0' },
  ])
  expect(msg.startsWith('[\n  {\n    "')).toBe(true)
  await manage('DescribeModel')
  expect(grpc.models.asked[0]).toEqual(['describe', 'größe', 'all', true])
  expect(grpc.models.asked[1]!.slice(0, 3)).toEqual(['describe', 'echo', undefined])
})

describe('errors', () => {
  const rows: [ErrorCode, Status, string][] = [
    ['MODEL_NOT_FOUND', Status.NOT_FOUND, 'archive.model.ModelNotFoundException'],
    ['VERSION_NOT_FOUND', Status.NOT_FOUND, 'archive.model.ModelVersionNotFoundException'],
    ['INVALID_ARGUMENT', Status.INVALID_ARGUMENT, 'http.BadRequestException'],
    ['INVALID_MODEL', Status.INVALID_ARGUMENT, 'archive.model.InvalidModelException'],
    ['INVALID_ARCHIVE', Status.INVALID_ARGUMENT, 'archive.model.InvalidModelException'],
    ['DOWNLOAD_FAILED', Status.INVALID_ARGUMENT, 'archive.DownloadArchiveException'],
    ['CONFLICT', Status.UNKNOWN, 'http.ConflictStatusException'],
    ['DEFAULT_VERSION', Status.UNKNOWN, 'http.InvalidModelVersionException'],
    ['CLEANUP_TIMEOUT', Status.UNKNOWN, 'http.RequestTimeoutException'],
    ['WORKER_START_FAILED', Status.INTERNAL, 'http.InternalServerException'],
    ['INTERNAL', Status.INTERNAL, 'http.InternalServerException'],
  ]

  test.each(rows)('%s of every rpc', async (code, status, className) => {
    grpc.models.failure = new ServeError(code, 'Why ü')
    for (const rpc of RPCS) {
      const error = await failure(manage(rpc))
      expect([rpc, error.code, error.details]).toEqual([rpc, status, `Why ü\norg.pytorch.serve.${className}`])
    }
    expect(grpc.logged).toHaveLength(code === 'INTERNAL' ? RPCS.length : 0)
  })

  test('a describe that would ask the handler fails like an inference', async () => {
    grpc.models.failure = new ServeError('MODEL_NOT_FOUND', 'Model not found: x')
    const customized = { model_name: 'x', customized: true }
    expect((await failure(manage('DescribeModel', customized))).code).toBe(Status.INTERNAL)
    const all = { ...customized, model_version: 'all' }
    expect((await failure(manage('DescribeModel', all))).code).toBe(Status.NOT_FOUND)
  })

  test('every rpc needs the management token', async () => {
    grpc.authorizer.enabled = true
    for (const rpc of RPCS) {
      for (const options of [[], [token('inference')]]) {
        const error = await failure(manage(rpc, REQUESTS[rpc], ...options))
        expect([error.code, error.details]).toEqual([Status.PERMISSION_DENIED, 'Token Authorization failed.'])
      }
    }
    expect(grpc.models.asked).toEqual([])
    for (const rpc of RPCS) await manage(rpc, REQUESTS[rpc], token('management'))
    expect(grpc.models.asked).toHaveLength(RPCS.length)
  })
})

describe('with the model API off', () => {
  test.each(['RegisterModel', 'UnregisterModel'] as const)('%s is refused, after the token', async (rpc) => {
    const closed = await startGrpc({ enableModelApi: false })
    const refused = () => failure(call(closed.management, closed.management[rpc], REQUESTS[rpc]))
    const error = await refused()
    expect([error.code, error.details]).toEqual([
      Status.PERMISSION_DENIED,
      'Model API disabled: start the server with --enable-model-api, or set enable_model_api=true',
    ])
    closed.authorizer.enabled = true
    expect((await refused()).details).toBe('Token Authorization failed.')
    expect(closed.models.asked).toEqual([])
    await closed.close()
  })

  test('the other rpcs work', async () => {
    const closed = await startGrpc({ enableModelApi: false })
    for (const rpc of ['DescribeModel', 'ListModels', 'ScaleWorker', 'SetDefault'] as const) {
      await call(closed.management, closed.management[rpc], REQUESTS[rpc])
    }
    expect(closed.models.asked).toHaveLength(4)
    await closed.close()
  })
})
