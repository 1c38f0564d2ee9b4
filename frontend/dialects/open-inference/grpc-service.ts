import type { sendUnaryData, ServerUnaryCall, UntypedServiceImplementation } from '@grpc/grpc-js'
import { ServeError } from '../../../common/errors.ts'
import type { TokenKind } from '../../auth/authorizer.ts'
import type { ReplyHead } from '../../jobs/reply-sink.ts'
import { isModelReady, isServerReady } from '../../models/readiness.ts'
import { modelMetadata, serverFacts } from './metadata.ts'
import type { Answer } from './answers.ts'
import { UnaryInferSink, type UnaryTarget } from './replies.ts'
import { logFailure } from '../../edge/grpc/log.ts'
import { replyMetadata } from '../../edge/grpc/reply-metadata.ts'
import { deadlineOf } from '../../edge/grpc/request.ts'
import { submitJob } from '../../edge/grpc/submit-call.ts'
import { authorize } from '../../edge/grpc/token.ts'
import { unaryRpc } from '../../edge/grpc/unary-rpc.ts'
import type { InferenceV2Deps, InferStream, StreamForm } from './grpc-deps.ts'
import { callError } from './grpc-errors.ts'
import { inferResponse, parameterMap } from './grpc-response.ts'
import type {
  ModelInferRequest,
  ModelInferResponse,
  ModelRequest,
  RepositoryRequest,
} from './grpc-messages.ts'
import { MlserverStream } from './grpc-mlserver-stream.ts'
import { streamShape } from './grpc-shape.ts'
import { StreamCall } from './grpc-stream-call.ts'
import { asked, callFor } from './grpc-target.ts'
import { TritonStream } from './grpc-triton-stream.ts'

type InferCall = ServerUnaryCall<ModelInferRequest, ModelInferResponse>

/** `inference.GRPCInferenceService` (spec 2), handlers by rpc name. `form` is the listener's. */
export function inferenceV2Service(deps: InferenceV2Deps, form: StreamForm): UntypedServiceImplementation {
  const { models } = deps
  return {
    ServerLive: rpc(deps, 'ServerLive', () => ({ live: true })),
    ServerReady: rpc(deps, 'ServerReady', async () => ({ ready: await isServerReady(models) })),
    ServerMetadata: rpc(deps, 'ServerMetadata', serverFacts),
    ModelReady: rpc(deps, 'ModelReady', async (request: ModelRequest) => {
      return { ready: await isModelReady(models, nameOf(request), request.version || undefined) }
    }),
    ModelMetadata: rpc(deps, 'ModelMetadata', (request: ModelRequest) => metadataMessage(deps, request)),
    ModelInfer: (call: InferCall, respond: sendUnaryData<ModelInferResponse>) => {
      modelInfer(deps, call, respond)
    },
    ModelStreamInfer: (call: InferStream) => {
      modelStreamInfer(deps, form, call)
    },
    RepositoryIndex: rpc(deps, 'RepositoryIndex', async ({ ready }: { ready?: boolean }) => {
      return { models: await models.repository.index(ready === true) }
    }),
    RepositoryModelLoad: manage(deps, 'RepositoryModelLoad', async (name) => {
      await models.repository.load(name)
      return { model_name: name, isLoaded: true }
    }),
    RepositoryModelUnload: manage(deps, 'RepositoryModelUnload', async (name) => {
      await models.repository.unload(name)
      return { model_name: name, isUnloaded: true }
    }),
  }
}

/** A unary request. */
export function modelInfer(
  deps: InferenceV2Deps,
  call: InferCall,
  respond: sendUnaryData<ModelInferResponse>,
): void {
  const fail = (error: ServeError): void => {
    logFailure(deps.log, 'ModelInfer', error)
    respond(callError(error))
  }
  try {
    authorize(deps.authorizer, 'inference', call)
    const request = asked(deps, call.request)
    const target: UnaryTarget = {
      answer: (head: ReplyHead, answer: Answer) => {
        const metadata = replyMetadata({ ...head, contentType: undefined })
        if (metadata !== undefined) call.sendMetadata(metadata)
        respond(null, inferResponse(answer, request.raw))
      },
      fail,
    }
    const { request: infer, reader } = callFor(request, call.metadata, deadlineOf(call), false)
    const sink = new UnaryInferSink(reader, target, deps.settings.maxResponseSize)
    submitJob(deps, call, infer, sink)
  } catch (thrown) {
    fail(ServeError.from(thrown))
  }
}

/** The first message tells who is asked, and whether the client expects Triton's answers. */
function modelStreamInfer(deps: InferenceV2Deps, form: StreamForm, call: InferStream): void {
  const stream = new StreamCall(call, deps.log)
  const none = (): void => {
    stream.fail(callError(new ServeError('INVALID_ARGUMENT', 'The stream held no request')))
  }
  try {
    authorize(deps.authorizer, 'inference', call)
  } catch (thrown) {
    stream.fail(callError(ServeError.from(thrown)))
    return
  }
  call.once('end', none)
  const begin = (first: ModelInferRequest): void => {
    call.off('end', none)
    const shape = streamShape(call.metadata, first, form.shape)
    const handler = new (shape === 'triton' ? TritonStream : MlserverStream)(stream, deps, form)
    stream.attach(handler, first)
  }
  call.once('data', stream.guarded(begin))
}

async function metadataMessage({ models }: InferenceV2Deps, request: ModelRequest): Promise<object> {
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
function manage(deps: InferenceV2Deps, name: string, run: (model: string) => Promise<object>) {
  const checked = async ({
    model_name: model,
    repository_name: other,
  }: RepositoryRequest): Promise<object> => {
    if (!deps.settings.enableModelApi) throw new ServeError('API_DISABLED', 'Model API disabled')
    return run(nameOf({ name: model || other }))
  }
  return rpc(deps, name, checked, 'management')
}

function rpc<Request>(
  deps: InferenceV2Deps,
  name: string,
  answer: (request: Request) => object | Promise<object>,
  token: TokenKind = 'inference',
) {
  return unaryRpc(deps, name, { token, answer, toCallError: callError })
}
