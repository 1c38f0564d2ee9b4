import type { sendUnaryData, ServerUnaryCall, UntypedServiceImplementation } from '@grpc/grpc-js'
import { ServeError } from '../../../common/errors.ts'
import type { CallError } from '../../edge/grpc/call-error.ts'
import { loadService, type LoadedService } from '../../edge/grpc/definitions.ts'
import { deadlineOf, requestHeaders, submitUnary } from '../../edge/grpc/metadata.ts'
import { newRequestId, type Sender, type JobRequest } from '../../jobs/job-request.ts'

import type { ReplyHead } from '../../jobs/reply-sink.ts'
import { withModelMeant } from '../../models/model-errors.ts'
import type { ModelOperations, Routed } from '../../models/operations.ts'
import { isModelReady, isServerReady } from '../../models/readiness.ts'
import { serverMetadata } from '../../package-info.ts'
import { callDeps, modelsRpcs, type GrpcCallDeps, type GrpcDeps, type GrpcDialect } from '../grpc-dialect.ts'
import { jsonAnswer } from '../open-inference/answers.ts'
import { modelInfer, withUndecodedContents } from '../open-inference/grpc.ts'
import {
  inferResponse,
  type ModelInferRequest,
  type ModelInferResponse,
  type ModelRequest,
} from '../open-inference/grpc-messages.ts'
import { inferRequestJson } from '../open-inference/grpc-request-json.ts'
import { takesTensors } from '../open-inference/infer-job.ts'
import { inferenceError, managementError } from '../torchserve/grpc-errors.ts'
import { unaryCallReply } from '../torchserve/grpc-reply.ts'

type ModelInferCall = ServerUnaryCall<ModelInferRequest, ModelInferResponse>

let definition: LoadedService | undefined

/**
 * `GRPCInferenceService` in TorchServe's package, for handlers of its kind. 64-bit integers are texts, absent
 * lists empty.
 */
export const torchserveOpenInferenceGrpc: GrpcDialect = {
  listeners: ['inference'],
  isOn: ({ openInferenceProtocol }) => openInferenceProtocol,
  facts: () => {
    const name = 'org.pytorch.serve.grpc.openinference.GRPCInferenceService'
    const decode = { longs: String, arrays: true }
    const load = (): LoadedService => loadService('open_inference_grpc.proto', name, { decode })
    definition ??= withUndecodedContents(load())
    return { definition, token: () => 'inference', toCallError: inferenceError }
  },
  implement: openInferenceService,
}

/** Handlers by rpc name. */
function openInferenceService(deps: GrpcDeps): UntypedServiceImplementation {
  const rpc = modelsRpcs(deps, toCallError)
  return {
    ServerLive: rpc('ServerLive', () => ({ live: true })),
    ServerReady: rpc('ServerReady', async (_request, models) => ({
      ready: await isServerReady(models),
    })),
    ServerMetadata: rpc('ServerMetadata', () => serverMetadata),
    ModelReady: rpc('ModelReady', async ({ name, version }: ModelRequest, models) => {
      if (!name) throw new ServeError('INVALID_ARGUMENT', 'Parameter name is required.')
      return { ready: await isModelReady(models, name, version || undefined) }
    }),
    ModelMetadata: rpc('ModelMetadata', (request: ModelRequest, models) => modelMetadata(models, request)),
    ModelInfer: (call: ModelInferCall, respond: sendUnaryData<ModelInferResponse>) => {
      const own = callDeps(deps, call)
      const routed = routedOf(own.models, call)
      const routedTo = routed?.routedTo
      if (routed !== undefined && takesTensors(routed.status)) modelInfer(own, call, respond, routedTo)
      else inferAsJson(own, call, respond, routedTo)
    },
  }
}

/**
 * The tensors are one JSON body for the handler, and its JSON is the response (docs/grpc.md); what it leaves
 * out of id, model_name and model_version comes from the request.
 */
function inferAsJson(
  { models, settings, log, sender }: GrpcCallDeps,
  call: ModelInferCall,
  respond: sendUnaryData<ModelInferResponse>,
  routedTo: string | undefined,
): void {
  const { id, model_name: modelName = '', model_version: modelVersion = '' } = call.request
  const encode = (body: Uint8Array, head: ReplyHead): ModelInferResponse =>
    inferResponse(jsonAnswer(head, body, { id, modelName, modelVersion }), false)
  const target = { rpc: 'ModelInfer', call, respond, encode }
  const reply = unaryCallReply(target, settings.maxResponseSize, log)
  try {
    const data = requestBody(call.request, settings.maxRequestSize)
    submitUnary(models, call, inferRequest(call, sender, data, routedTo), reply)
  } catch (thrown) {
    reply.fail(withModelMeant(ServeError.from(thrown), models))
  }
}

/**
 * TorchServe's rules are for handlers that speak nothing else, and for what is not there: undefined.
 */
function routedOf(models: ModelOperations, { request, metadata }: ModelInferCall): Routed | undefined {
  const { model_name: modelName = '', model_version: version } = request
  try {
    const headers = requestHeaders(metadata)
    return models.route({ modelName, modelVersion: version || undefined, headers })
  } catch {
    return undefined
  }
}

/** The tensors as one JSON body. */
function requestBody(message: ModelInferRequest, maxBytes: number): Buffer {
  if (!message.model_name) throw new ServeError('INVALID_ARGUMENT', 'Parameter model_name is required.')
  return Buffer.from(inferRequestJson(message, maxBytes))
}

/** The metadata are headers, as with Predictions. */
function inferRequest(
  call: ModelInferCall,
  sender: Sender,
  data: Uint8Array,
  routedTo: string | undefined,
): JobRequest {
  const { model_name: modelName = '', model_version: modelVersion } = call.request
  return {
    requestId: newRequestId(),
    dialect: 'open-inference-grpc',
    sender,
    modelName,
    modelVersion: modelVersion === '' ? undefined : modelVersion,
    routedTo,
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

function toCallError(error: ServeError): CallError {
  const isAbsent = error.code === 'MODEL_NOT_FOUND' || error.code === 'VERSION_NOT_FOUND'
  return isAbsent ? managementError(error) : inferenceError(error)
}
