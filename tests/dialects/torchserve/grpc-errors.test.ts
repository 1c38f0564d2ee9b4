import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { status as Status } from '@grpc/grpc-js'
import { ERROR_CODES, ServeError, type ErrorCode } from '../../../common/errors.ts'
import { queueFull } from '../../../frontend/jobs/open-jobs.ts'
import { readAll } from '../../support/grpc-clients.ts'
import {
  failure,
  predictWith,
  REQUEST,
  startGrpc,
  streamWith,
  text,
  token,
  type RunningGrpc,
} from '../../edge/grpc/start-grpc.ts'

let grpc: RunningGrpc

beforeEach(async () => {
  grpc = await startGrpc()
})

afterEach(() => grpc.close())

const predict = (request: object = REQUEST, ...options: unknown[]) => predictWith(grpc, request, ...options)
const stream = (request: object = REQUEST, ...options: unknown[]) => streamWith(grpc, request, ...options)

describe('errors', () => {
  const CLASS = 'org.pytorch.serve.http.InternalServerException'
  /**
   * Code and second line of the message; undefined: one line. As in TorchServe's GRPCJob.java; for our own
   * codes our choice.
   */
  const ROWS: Record<ErrorCode, [Status, string?]> = {
    INVALID_ARGUMENT: [Status.INTERNAL, 'BadRequestException.()'],
    MALFORMED_BODY: [Status.INVALID_ARGUMENT, 'org.pytorch.serve.http.BadRequestException'],
    INVALID_TENSOR: [Status.INVALID_ARGUMENT, 'org.pytorch.serve.http.BadRequestException'],
    TENSOR_MISMATCH: [Status.INVALID_ARGUMENT, 'org.pytorch.serve.http.BadRequestException'],
    UNSUPPORTED_ENCODING: [Status.INVALID_ARGUMENT, 'org.pytorch.serve.http.BadRequestException'],
    PAYLOAD_TOO_LARGE: [Status.RESOURCE_EXHAUSTED, 'org.pytorch.serve.http.BadRequestException'],
    ROUTE_NOT_FOUND: [Status.UNIMPLEMENTED, 'org.pytorch.serve.http.ResourceNotFoundException'],
    METHOD_NOT_ALLOWED: [Status.UNIMPLEMENTED, 'org.pytorch.serve.http.MethodNotAllowedException'],
    UNAUTHORIZED: [Status.PERMISSION_DENIED],
    INVALID_API_KEY: [Status.PERMISSION_DENIED, 'org.pytorch.serve.http.InvalidKeyException'],
    FOREIGN_PAGE: [Status.PERMISSION_DENIED, 'org.pytorch.serve.http.BadRequestException'],
    API_DISABLED: [Status.PERMISSION_DENIED],
    RATE_LIMITED: [Status.RESOURCE_EXHAUSTED],
    MODEL_NOT_FOUND: [Status.INTERNAL, 'org.pytorch.serve.archive.model.ModelNotFoundException'],
    VERSION_NOT_FOUND: [Status.INTERNAL, 'org.pytorch.serve.archive.model.ModelVersionNotFoundException'],
    MODEL_NOT_READY: [Status.UNAVAILABLE, 'org.pytorch.serve.http.ServiceUnavailableException'],
    MODEL_FAILED: [Status.UNAVAILABLE, 'org.pytorch.serve.http.ServiceUnavailableException'],
    CONFLICT: [Status.UNKNOWN, 'org.pytorch.serve.http.ConflictStatusException'],
    DEFAULT_VERSION: [Status.UNKNOWN, 'org.pytorch.serve.http.InvalidModelVersionException'],
    INVALID_MODEL: [Status.INVALID_ARGUMENT, 'org.pytorch.serve.archive.model.InvalidModelException'],
    INVALID_ARCHIVE: [Status.INVALID_ARGUMENT, 'org.pytorch.serve.archive.model.InvalidModelException'],
    UNTRUSTED_ARCHIVE: [Status.INVALID_ARGUMENT, 'org.pytorch.serve.archive.model.InvalidModelException'],
    DEPENDENCIES_FAILED: [Status.INVALID_ARGUMENT, 'org.pytorch.serve.archive.model.ModelException'],
    DOWNLOAD_FAILED: [Status.INVALID_ARGUMENT, 'org.pytorch.serve.archive.DownloadArchiveException'],
    WORKFLOW_NOT_FOUND: [Status.INTERNAL, 'org.pytorch.serve.archive.workflow.WorkflowNotFoundException'],
    INVALID_WORKFLOW: [
      Status.INVALID_ARGUMENT,
      'org.pytorch.serve.archive.workflow.InvalidWorkflowException',
    ],
    INVALID_DAG: [Status.INVALID_ARGUMENT, 'org.pytorch.serve.ensemble.InvalidDAGException'],
    REQUEST_NOT_FOUND: [Status.NOT_FOUND, 'org.pytorch.serve.http.ResourceNotFoundException'],
    WORKFLOW_NOT_REGISTERED: [Status.INTERNAL, 'org.pytorch.serve.archive.workflow.WorkflowException'],
    WORKFLOW_NODE_FAILED: [Status.INTERNAL, CLASS],
    NO_WORKER: [Status.INTERNAL, 'InternalServerException.()'],
    QUEUE_FULL: [Status.UNAVAILABLE, 'InternalServerException.()'],
    NO_DEVICE: [Status.INTERNAL, 'org.pytorch.serve.wlm.WorkerInitializationException'],
    SHUTTING_DOWN: [Status.UNAVAILABLE, 'org.pytorch.serve.http.ServiceUnavailableException'],
    QUEUE_TIMEOUT: [Status.UNAVAILABLE, 'org.pytorch.serve.http.ServiceUnavailableException'],
    RESPONSE_TIMEOUT: [Status.INTERNAL, CLASS],
    REQUEST_TIMEOUT: [Status.DEADLINE_EXCEEDED, CLASS],
    DEADLINE_EXCEEDED: [Status.DEADLINE_EXCEEDED],
    CLIENT_STALLED: [Status.DEADLINE_EXCEEDED, 'org.pytorch.serve.http.RequestTimeoutException'],
    CLEANUP_TIMEOUT: [Status.UNKNOWN, 'org.pytorch.serve.http.RequestTimeoutException'],
    CANCELLED: [Status.CANCELLED],
    HANDLER_FAILED: [Status.UNAVAILABLE, CLASS],
    HANDLER_REJECTED: [Status.INTERNAL, CLASS],
    INVALID_OUTPUT: [Status.UNAVAILABLE, CLASS],
    RESPONSE_TOO_LARGE: [Status.RESOURCE_EXHAUSTED, CLASS],
    SEND_OVERFLOW: [Status.RESOURCE_EXHAUSTED, CLASS],
    OUT_OF_MEMORY: [Status.INTERNAL, CLASS],
    WORKER_LOST: [Status.INTERNAL, CLASS],
    WORKER_KILLED: [Status.RESOURCE_EXHAUSTED, CLASS],
    WORKER_START_FAILED: [Status.INTERNAL, CLASS],
    PROTOCOL: [Status.INTERNAL, CLASS],
    CONFIG: [Status.INTERNAL, CLASS],
    INTERNAL: [Status.INTERNAL, CLASS],
  }

  test.each(ERROR_CODES)('%s, unary and streaming, at submit and from the handler', async (code) => {
    const [status, className] = ROWS[code]
    const expected = [status, className === undefined ? `It: ${code}` : `It: ${code}\n${className}`]
    const error = new ServeError(code, `It: ${code}`)
    grpc.models.onWork = (work) => work.job.fail(error)
    const late = [await failure(predict()), (await readAll(stream())).error!]
    grpc.models.failure = error
    const early = [await failure(predict()), (await readAll(stream())).error!]
    for (const got of [...late, ...early]) expect([got.code, got.details]).toEqual(expected)
    expect(grpc.logged).toHaveLength(code === 'INTERNAL' ? 4 : 0)
  })

  test('a full queue says when to ask again', async () => {
    grpc.models.failure = queueFull('full')
    for (const { metadata } of [await failure(predict()), (await readAll(stream())).error!])
      expect(metadata.getMap()).toMatchObject({ 'retry-after': '1', 'grpc-retry-pushback-ms': '1000' })
  })

  test.each([
    [400, Status.INVALID_ARGUMENT],
    [401, Status.UNAUTHENTICATED],
    [403, Status.PERMISSION_DENIED],
    [404, Status.NOT_FOUND],
    [409, Status.ABORTED],
    [413, Status.RESOURCE_EXHAUSTED],
    [416, Status.OUT_OF_RANGE],
    [422, Status.FAILED_PRECONDITION],
    [429, Status.RESOURCE_EXHAUSTED],
    [499, Status.CANCELLED],
    [500, Status.INTERNAL],
    [501, Status.UNIMPLEMENTED],
    [503, Status.UNAVAILABLE],
    [504, Status.DEADLINE_EXCEEDED],
    [507, Status.INTERNAL],
    [302, Status.UNKNOWN],
  ])('a handler that rejects with %i', async (http, status) => {
    grpc.models.onWork = (work) => work.job.fail(new ServeError('HANDLER_REJECTED', 'No', { status: http }))
    expect((await failure(predict())).code).toBe(status)
  })

  test('a missing model name', async () => {
    const error = await failure(predict({ input: {} }))
    expect([error.code, error.details]).toEqual([
      Status.INTERNAL,
      'Parameter model_name is required.\nBadRequestException.()',
    ])
  })

  test('a thrown bug leaves as "Internal server error", with its cause in the log only', async () => {
    grpc.models.onWork = () => {
      throw new TypeError('secret')
    }
    expect((await failure(predict())).details).not.toContain('secret')
    expect(grpc.logged).toEqual(['Internal server error'])
  })

  test('a message with half a character or of a megabyte still arrives, with its class', async () => {
    for (const message of ['broken \ud83d', '%ü€\n'.repeat(300_000)]) {
      grpc.models.onWork = (work) => work.job.fail(new ServeError('HANDLER_FAILED', message))
      const { error } = await readAll(stream())
      expect(error?.code).toBe(Status.UNAVAILABLE)
      expect(error?.details).toMatch(/InternalServerException$/)
    }
  })

  test('a request over max_request_size is refused, and the connection goes on', async () => {
    const tooLarge = { model_name: 'echo', input: { data: Buffer.alloc(1_000_000) } }
    expect((await failure(predict(tooLarge))).code).toBe(Status.RESOURCE_EXHAUSTED)
    expect((await readAll(stream(tooLarge))).error?.code).toBe(Status.RESOURCE_EXHAUSTED)
    expect(grpc.models.works).toHaveLength(0)
    expect((await predict()).prediction.toString()).toBe('ok')
  })

  test('the token: none, of the wrong kind, right', async () => {
    grpc.authorizer.enabled = true
    expect((await failure(predict())).code).toBe(Status.PERMISSION_DENIED)
    expect((await readAll(stream(REQUEST, token('management')))).error?.code).toBe(Status.PERMISSION_DENIED)
    expect(grpc.models.works).toHaveLength(0)
    expect(text((await readAll(stream(REQUEST, token('inference')))).messages)).toEqual(['ok'])
  })
})
