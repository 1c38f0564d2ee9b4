import type { GrpcCall } from '../../edge/grpc/call.ts'
import type { UntypedServiceImplementation } from '@grpc/grpc-js'
import { ServeError } from '../../../common/errors.ts'
import { exactJson } from '../../../common/exact-json.ts'
import { audited, type AuditSubject, type Managed } from '../../edge/grpc/call.ts'
import type { CallError } from '../../edge/grpc/call-error.ts'
import { loadService, type LoadedService } from '../../edge/grpc/definitions.ts'
import { unaryRpc } from '../../edge/grpc/unary-rpc.ts'
import { pinOf } from '../../models/located-model.ts'
import type { ModelOperations } from '../../models/operations.ts'
import type { GrpcDeps, GrpcDialect } from '../grpc-dialect.ts'
import { MODEL_API_HINT } from '../model-api-hint.ts'
import { inferenceError, managementError } from './grpc-errors.ts'

let definition: LoadedService | undefined

/** TorchServe's `ManagementAPIsService`: the operations of REST, answered with their sentence. */
export const torchserveManagementGrpc: GrpcDialect = {
  listeners: ['management'],
  facts: () => {
    const name = 'org.pytorch.serve.grpc.management.ManagementAPIsService'
    definition ??= loadService('management.proto', name)
    return { definition, token: () => 'management', toCallError: managementError }
  },
  implement: managementService,
}

/** The fields of all requests in proto/management.proto as proto-loader decodes them; absent: undefined. */
interface ManagementRequest {
  model_name?: string
  model_version?: string
  customized?: boolean
  limit?: number
  next_page_token?: number
  url?: string
  handler?: string
  runtime?: string
  batch_size?: number
  max_batch_delay?: number
  response_timeout?: number
  startup_timeout?: number
  initial_workers?: number
  min_worker?: number
  max_worker?: number
  synchronous?: boolean
  s3_sse_kms?: boolean
  sha256?: string
}

type Answer = string | Promise<string>

/** Handlers by rpc name. */
function managementService(deps: GrpcDeps): UntypedServiceImplementation {
  const needModelApi = (): void => {
    if (!deps.settings.enableModelApi)
      throw new ServeError('API_DISABLED', `Model API disabled: ${MODEL_API_HINT}`)
  }
  return {
    DescribeModel: rpc(deps, 'DescribeModel', {
      answer: (request, models) => describe(models, request),
      toCallError: describeError,
    }),
    ListModels: rpc(deps, 'ListModels', {
      answer: (request, models) =>
        pretty(models.list(positive(request.limit), positive(request.next_page_token))),
    }),
    RegisterModel: rpc(deps, 'RegisterModel', {
      answer: (request, models) => {
        needModelApi()
        return register(models, request)
      },
      managed: {
        operation: 'register model',
        subject: ({ url, model_name }) => ({ model: nonEmpty(model_name), url: nonEmpty(url) }),
      },
    }),
    ScaleWorker: rpc(deps, 'ScaleWorker', {
      answer: (request, models) => scale(models, request),
      managed: { operation: 'scale model', subject: modelOf },
    }),
    SetDefault: rpc(deps, 'SetDefault', {
      answer: (request, models) =>
        models.setDefault(request.model_name ?? '', request.model_version ?? '').message,
      managed: { operation: 'set default version', subject: modelOf },
    }),
    UnregisterModel: rpc(deps, 'UnregisterModel', {
      answer: (request, models) => {
        needModelApi()
        return unregister(models, request)
      },
      managed: { operation: 'unregister model', subject: modelOf },
    }),
  }
}

interface Management {
  answer(request: ManagementRequest, models: ModelOperations): Answer
  /** Absent: managementError. */
  toCallError?: (error: ServeError, request: ManagementRequest) => CallError
  /** For rpcs that change something. */
  managed?: Managed<ManagementRequest>
}

function rpc(deps: GrpcDeps, name: string, { answer, toCallError = managementError, managed }: Management) {
  const message = async (request: ManagementRequest, call: GrpcCall): Promise<{ msg: string }> => {
    const run = (): Answer => answer(request, call.models)
    if (managed === undefined) return { msg: await run() }
    return { msg: await audited(call, request, run, { ...managed, toCallError, audit: deps.audit }) }
  }
  return unaryRpc(deps.log, name, { answer: message, toCallError })
}

function modelOf(request: ManagementRequest): AuditSubject {
  return { model: nonEmpty(request.model_name), version: nonEmpty(request.model_version) }
}

async function describe(models: ModelOperations, request: ManagementRequest): Promise<string> {
  const descriptions = await models.describe(
    request.model_name ?? '',
    nonEmpty(request.model_version),
    request.customized,
  )
  return pretty(descriptions)
}

/** A describe that asks the handler is an inference job in TorchServe, and fails like one. */
function describeError(error: ServeError, request: ManagementRequest): CallError {
  const asksHandler = request.customized === true && request.model_version !== 'all'
  return asksHandler ? inferenceError(error) : managementError(error)
}

async function register(models: ModelOperations, request: ManagementRequest): Promise<string> {
  const url = nonEmpty(request.url)
  if (url === undefined) throw new ServeError('INVALID_ARGUMENT', 'Parameter url is required.')
  const { message } = await models.register({
    url,
    modelName: nonEmpty(request.model_name),
    handler: nonEmpty(request.handler),
    runtime: nonEmpty(request.runtime),
    batchSize: positive(request.batch_size),
    maxBatchDelay: positive(request.max_batch_delay),
    responseTimeout: positive(request.response_timeout),
    startupTimeout: positive(request.startup_timeout),
    initialWorkers: notNegative(request.initial_workers),
    synchronous: request.synchronous ?? false,
    s3SseKms: request.s3_sse_kms ?? false,
    sha256: pinOf(nonEmpty(request.sha256)),
  })
  return message
}

async function scale(models: ModelOperations, request: ManagementRequest): Promise<string> {
  const { message, warnings = [] } = await models.scale({
    modelName: request.model_name ?? '',
    modelVersion: nonEmpty(request.model_version),
    minWorker: notNegative(request.min_worker),
    maxWorker: notNegative(request.max_worker),
    synchronous: request.synchronous ?? false,
  })
  return [message, ...warnings].join(' ')
}

async function unregister(models: ModelOperations, request: ManagementRequest): Promise<string> {
  const modelName = nonEmpty(request.model_name)
  // TorchServe's sentence, although it is not the URL that is missing.
  if (modelName === undefined) throw new ServeError('INVALID_ARGUMENT', 'Parameter url is required.')
  return (await models.unregister(modelName, nonEmpty(request.model_version))).message
}

function pretty(value: unknown): string {
  return exactJson(value, 2)
}

function nonEmpty(value: string | undefined): string | undefined {
  return value === '' ? undefined : value
}

function positive(value: number | undefined): number | undefined {
  return value !== undefined && value > 0 ? value : undefined
}

/** For optional fields, whose zero was really sent. */
function notNegative(value: number | undefined): number | undefined {
  return value !== undefined && value >= 0 ? value : undefined
}
