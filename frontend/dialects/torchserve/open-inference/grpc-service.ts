import { randomUUID } from 'node:crypto'
import type { sendUnaryData, ServerUnaryCall, UntypedServiceImplementation } from '@grpc/grpc-js'
import { ServeError } from '../../../../common/errors.ts'
import type { JobRequest } from '../../../jobs/job.ts'
import type { ModelOperations } from '../../../models/operations.ts'
import { isModelReady, isServerReady } from '../../../models/readiness.ts'
import { takesTensors } from '../../open-inference/infer-job.ts'
import { serverMetadata } from '../../../package-info.ts'
import { type CallError, inferenceError, managementError } from '../grpc-errors.ts'
import { deadlineOf, requestHeaders } from '../../../edge/grpc/request.ts'
import { UnaryReply } from '../grpc-reply.ts'
import { submitCall } from '../../../edge/grpc/submit-call.ts'
import { unaryRpc } from '../../../edge/grpc/unary-rpc.ts'
import { inferRequestJson } from './grpc-request.ts'
import { inferResponse } from './grpc-response.ts'
import type { InferenceV2Deps } from '../../open-inference/grpc-deps.ts'
import { modelInfer } from '../../open-inference/grpc-service.ts'
import type {
  ModelInferRequest,
  ModelInferResponse,
  ModelRequest,
} from '../../open-inference/grpc-messages.ts'

type InferCall = ServerUnaryCall<ModelInferRequest, ModelInferResponse>

/** `GRPCInferenceService` in TorchServe's package (spec 3.5), handlers by rpc name. Every rpc needs the inference token. */
export function openInferenceService(deps: InferenceV2Deps): UntypedServiceImplementation {
  const { models } = deps
  return {
    ServerLive: rpc(deps, 'ServerLive', () => ({ live: true })),
    ServerReady: rpc(deps, 'ServerReady', async () => ({ ready: await isServerReady(models) })),
    ServerMetadata: rpc(deps, 'ServerMetadata', () => serverMetadata),
    ModelReady: rpc(deps, 'ModelReady', async ({ name, version }: ModelRequest) => {
      if (!name) throw new ServeError('INVALID_ARGUMENT', 'Parameter name is required.')
      return { ready: await isModelReady(models, name, version || undefined) }
    }),
    ModelMetadata: rpc(deps, 'ModelMetadata', (request: ModelRequest) => modelMetadata(models, request)),
    ModelInfer: (call: InferCall, respond: sendUnaryData<ModelInferResponse>) => {
      if (knowsTensors(models, call.request)) {
        modelInfer(deps, call, respond)
        return
      }
      const encode = (body: Uint8Array, head: Parameters<typeof inferResponse>[2]): ModelInferResponse =>
        inferResponse(call.request, body, head)
      const target = { rpc: 'ModelInfer', call, respond, encode }
      submitCall(deps, call, new UnaryReply(target, deps.settings.maxResponseSize, deps.log), inferRequest)
    },
  }
}

/** TorchServe's rules are for handlers that speak nothing else, and for what is not there. */
function knowsTensors(
  models: ModelOperations,
  { model_name: name = '', model_version: version }: ModelInferRequest,
): boolean {
  try {
    return takesTensors(models.status(name, version || undefined))
  } catch {
    return false
  }
}

/** The tensors are one JSON body, and the metadata headers, as with Predictions. */
function inferRequest(call: InferCall): JobRequest {
  const { model_name: modelName, model_version: modelVersion } = call.request
  if (!modelName) throw new ServeError('INVALID_ARGUMENT', 'Parameter model_name is required.')
  const data = Buffer.from(inferRequestJson(call.request))
  return {
    requestId: randomUUID(),
    modelName,
    modelVersion: modelVersion === '' ? undefined : modelVersion,
    method: 'handle',
    headers: requestHeaders(call.metadata),
    parts: [{ name: 'body', contentType: 'application/json', data }],
    deadline: deadlineOf(call),
  }
}

async function modelMetadata(models: ModelOperations, { name, version }: ModelRequest): Promise<object> {
  if (!name) throw new ServeError('INVALID_ARGUMENT', 'Parameter model_name is required.')
  await models.describe(name, version || undefined)
  const all = await models.describe(name, 'all')
  const versions = all.map(({ modelVersion }) => modelVersion)
  return { name, versions, platform: '', inputs: [], outputs: [] }
}

function rpc<Request>(
  deps: InferenceV2Deps,
  name: string,
  answer: (request: Request) => object | Promise<object>,
) {
  return unaryRpc(deps, name, { token: 'inference', answer, toCallError })
}

function toCallError(error: ServeError): CallError {
  const isAbsent = error.code === 'MODEL_NOT_FOUND' || error.code === 'VERSION_NOT_FOUND'
  return isAbsent ? managementError(error) : inferenceError(error)
}
