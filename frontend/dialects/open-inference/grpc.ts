import type { GrpcCall } from '../../edge/grpc/call.ts'
import type {
  sendUnaryData,
  ServerDuplexStream,
  ServerUnaryCall,
  UntypedServiceImplementation,
} from '@grpc/grpc-js'
import { ServeError } from '../../../common/errors.ts'
import { audited } from '../../edge/grpc/call.ts'
import { logFailure } from '../../edge/grpc/call-error.ts'
import {
  encoderOf,
  loadService,
  withEncodedResponses,
  withMessagesOf,
  type LoadedService,
} from '../../edge/grpc/definitions.ts'
import { deadlineOf, replyMetadata, submitUnary } from '../../edge/grpc/metadata.ts'
import { DuplexCall } from '../../edge/grpc/stream-call.ts'
import { unaryRpc } from '../../edge/grpc/unary-rpc.ts'
import type { ReplyHead } from '../../jobs/reply-sink.ts'
import { withModelMeant } from '../../models/model-errors.ts'
import { isModelReady, isServerReady } from '../../models/readiness.ts'
import {
  callDeps,
  modelsRpcs,
  type GrpcCallDeps,
  type GrpcDeps,
  type GrpcDialect,
  type GrpcListenerKind,
} from '../grpc-dialect.ts'
import { MODEL_API_HINT } from '../model-api-hint.ts'
import type { ModelOperations } from '../../models/operations.ts'
import { asked, callFor } from './grpc-asked.ts'
import { callError } from './grpc-errors.ts'
import {
  type ModelInferRequest,
  type ModelInferResponse,
  type ModelRequest,
  parameterMap,
  type RepositoryRequest,
} from './grpc-messages.ts'
import { InferStream, type StreamForm, type StreamShape } from './grpc-stream.ts'
import { modelMetadata, serverFacts } from './metadata.ts'
import { unaryReply } from './replies.ts'
import type { UnaryTarget } from '../joined-reply.ts'

type ModelInferCall = ServerUnaryCall<ModelInferRequest, ModelInferResponse>
type Definitions = Readonly<Record<StreamShape, LoadedService>>

/** Whoever loads and unloads models manages them. */
const MANAGEMENT_RPCS: ReadonlySet<string> = new Set(['RepositoryModelLoad', 'RepositoryModelUnload'])
const STREAMED = 'ModelStreamInfer'

/**
 * `inference.GRPCInferenceService` of the Open Inference Protocol; each listener has the streams of one of
 * its peers.
 */
export const openInferenceGrpc: GrpcDialect = {
  listeners: ['open-inference', 'triton'],
  facts: (listener) => ({
    definition: withEncodedResponses(definitions()[shapeOf(listener)], [STREAMED]),
    token: (rpc) => (MANAGEMENT_RPCS.has(rpc) ? 'management' : 'inference'),
    toCallError: callError,
  }),
  implement: (deps, listener) => {
    const { mlserver, triton } = definitions()
    // Every listener can answer in either shape.
    const encode = { mlserver: encoderOf(mlserver, STREAMED), triton: encoderOf(triton, STREAMED) }
    return openInferenceService(deps, { shape: shapeOf(listener), encode })
  },
}

let loaded: Definitions | undefined

/** 64-bit integers are texts, absent lists are empty. */
const decode = { longs: String, arrays: true }

/**
 * The service whose rpcs `ModelInfer`, and `ModelStreamInfer` if it has one, have the messages of
 * infer_messages.proto.
 */
export function withUndecodedContents(
  service: LoadedService,
  shape: StreamShape = 'mlserver',
): LoadedService {
  const messages = loadService('infer_messages.proto', 'torchserve_ts.Messages', { decode })
  const streamed = shape === 'triton' ? 'TritonStream' : 'ModelInfer'
  const rpcs = new Map([
    ['ModelInfer', 'ModelInfer'],
    [STREAMED, streamed],
  ])
  return withMessagesOf(service, messages, rpcs)
}

function definitions(): Definitions {
  const load = (shape: StreamShape): LoadedService => {
    const service = loadService(`inference/${shape}.proto`, 'inference.GRPCInferenceService', { decode })
    return withUndecodedContents(service, shape)
  }
  loaded ??= { mlserver: load('mlserver'), triton: load('triton') }
  return loaded
}

function shapeOf(listener: GrpcListenerKind): StreamShape {
  return listener === 'triton' ? 'triton' : 'mlserver'
}

/** Handlers by rpc name. `form` is the listener's. */
function openInferenceService(deps: GrpcDeps, form: StreamForm): UntypedServiceImplementation {
  const rpc = modelsRpcs(deps, callError)
  return {
    ServerLive: rpc('ServerLive', () => ({ live: true })),
    ServerReady: rpc('ServerReady', async (_request, models) => ({
      ready: await isServerReady(models),
    })),
    ServerMetadata: rpc('ServerMetadata', serverFacts),
    ModelReady: rpc('ModelReady', async (request: ModelRequest, models) => {
      return { ready: await isModelReady(models, nameOf(request), request.version || undefined) }
    }),
    ModelMetadata: rpc('ModelMetadata', (request: ModelRequest, models) => {
      return metadataMessage(models, request)
    }),
    ModelInfer: (call: ModelInferCall, respond: sendUnaryData<ModelInferResponse>) => {
      modelInfer(callDeps(deps, call), call, respond)
    },
    ModelStreamInfer: (call: ServerDuplexStream<ModelInferRequest, Buffer>) => {
      new InferStream(new DuplexCall(call, deps.log), callDeps(deps, call), form)
    },
    RepositoryIndex: rpc('RepositoryIndex', async ({ ready }: { ready?: boolean }, models) => {
      return { models: await models.repository.index(ready === true) }
    }),
    RepositoryModelLoad: manage(deps, 'RepositoryModelLoad', async (name, models) => {
      await models.repository.load(name)
      return { model_name: name, isLoaded: true }
    }),
    RepositoryModelUnload: manage(deps, 'RepositoryModelUnload', async (name, models) => {
      await models.repository.unload(name)
      return { model_name: name, isUnloaded: true }
    }),
  }
}

/** A unary request. `routedTo`: the version that weights chose before, if they did. */
export function modelInfer(
  deps: GrpcCallDeps,
  call: ModelInferCall,
  respond: sendUnaryData<ModelInferResponse>,
  routedTo?: string,
): void {
  const fail = (error: ServeError): void => {
    logFailure(deps.log, 'ModelInfer', error)
    respond(callError(withModelMeant(error, deps.models)))
  }
  try {
    const request = asked(deps, call.request, call.metadata, routedTo)
    const target: UnaryTarget<ModelInferResponse> = {
      answer: (head: ReplyHead, message: ModelInferResponse) => {
        const metadata = replyMetadata({ ...head, contentType: undefined })
        if (metadata !== undefined) call.sendMetadata(metadata)
        respond(null, message)
      },
      fail,
    }
    const { raw } = request
    const { request: infer, reader } = callFor(deps, request, deadlineOf(call), { stream: false, raw })
    submitUnary(deps.models, call, infer, unaryReply(reader, target, deps.settings.maxResponseSize))
  } catch (thrown) {
    fail(ServeError.from(thrown))
  }
}

async function metadataMessage(models: ModelOperations, request: ModelRequest): Promise<object> {
  const metadata = await modelMetadata(models, nameOf(request), request.version || undefined)
  const tensors = (list: typeof metadata.inputs): object[] =>
    list.map((tensor) => ({ ...tensor, parameters: parameterMap(tensor.parameters) }))
  return { ...metadata, inputs: tensors(metadata.inputs), outputs: tensors(metadata.outputs) }
}

function nameOf({ name }: ModelRequest): string {
  if (name) return name
  throw new ServeError('INVALID_ARGUMENT', 'Parameter name is required.')
}

/** Loads and unloads models: for managers only. */
function manage(
  deps: GrpcDeps,
  name: string,
  run: (model: string, models: ModelOperations) => Promise<object>,
) {
  const { settings, audit } = deps
  const operation = name === 'RepositoryModelLoad' ? 'load model' : 'unload model'
  const subject = (request: RepositoryRequest) => ({ model: repositoryModel(request) })
  const checked = async (request: RepositoryRequest, models: ModelOperations): Promise<object> => {
    if (!settings.enableModelApi)
      throw new ServeError('API_DISABLED', `Model API disabled: ${MODEL_API_HINT}`)
    return run(nameOf({ name: repositoryModel(request) }), models)
  }
  const answer = (request: RepositoryRequest, call: GrpcCall): Promise<object> => {
    const work = () => checked(request, call.models)
    return audited(call, request, work, { audit, operation, subject, toCallError: callError })
  }
  return unaryRpc(deps.log, name, { answer, toCallError: callError })
}

function repositoryModel(request: RepositoryRequest): string | undefined {
  return request.model_name || request.repository_name
}
