import { ServeError } from '../../../common/errors.ts'
import { checkBody } from '../../../common/json-bounds.ts'
import { parseObject } from '../../../common/tensors/message.ts'
import { audited } from '../../edge/http/audited.ts'
import { readDecoded } from '../../edge/http/body.ts'
import type { HttpCall } from '../../edge/http/http-call.ts'
import { isModelReady, isServerReady } from '../../models/readiness.ts'
import type { RestDialect } from '../rest-dialect.ts'
import { takesTensors } from './infer-job.ts'
import { modelMetadata, serverFacts } from './metadata.ts'
import { errorAnswer, refusal } from './rest-errors.ts'
import { infer } from './rest-infer.ts'
import { type JsonAnswer, sendJson } from './rest-reply.ts'
import {
  type InferRoute,
  openInferencePaths,
  openInferenceRoute,
  type OpenInferenceRoute,
} from './rest-route.ts'

/** The Open Inference Protocol over REST: all paths below /v2 that are not TorchServe's or OpenAI's. */
export const openInference: RestDialect<OpenInferenceRoute> = {
  name: 'open-inference',
  route: ({ target }) => openInferenceRoute(target.segments),
  answer,
  refusal,
  paths: openInferencePaths,
  notFound,
}

/**
 * TorchServe also has the path `infer` without a version. It belongs to the protocol with
 * ts_open_inference_protocol, and for models whose handler has methods besides `handle`.
 */
function answer(call: HttpCall, route: OpenInferenceRoute): false | undefined {
  // Before anything shows whether the model is there.
  call.admit(route.kind === 'load' || route.kind === 'unload' ? 'management' : 'inference')
  if (isTorchServes(call, route)) return false
  switch (route.kind) {
    case 'infer':
    case 'infer_stream':
    case 'generate':
    case 'generate_stream':
      infer(call, route as InferRoute)
      break
    case 'index':
      index(call)
      break
    case 'load':
    case 'unload':
      sendJson(call, manage(call, route.kind, route.model))
      break
    default:
      sendJson(call, statusOf(call, route))
  }
  return undefined
}

/** Clients expect the protocol's `error` key in every 404 below /v2, including paths that only Triton has. */
function notFound({ target }: HttpCall, error: ServeError): string | undefined {
  return target.segments[0] === 'v2' ? errorAnswer(error).json : undefined
}

function isTorchServes(call: HttpCall, route: OpenInferenceRoute): boolean {
  const { settings } = call.state
  if (route.kind !== 'infer' || route.version !== undefined || settings.openInferenceProtocol) return false
  try {
    return !takesTensors(call.routeTo(route.model, undefined).status)
  } catch {
    return false // for an unknown model, one body serves both kinds of clients
  }
}

/** `{"ready": true}` selects models that can serve requests. tritonclient sends no body at all. */
function index(call: HttpCall): void {
  readDecoded(call, (body) => {
    checkBody(body, call.state.settings.maxRequestElements)
    const onlyReady = body.byteLength > 0 && parseObject(body)['ready'] === true
    sendJson(
      call,
      call.models.repository.index(onlyReady).then((list) => [200, list]),
    )
  })
}

function manage(call: HttpCall, what: 'load' | 'unload', model: string): Promise<JsonAnswer> {
  return audited(call, `${what} model`, { model }, async () => {
    if (call.req.method !== 'POST') throw new ServeError('METHOD_NOT_ALLOWED', 'Method Not Allowed')
    if (!call.state.settings.enableModelApi)
      throw new ServeError(
        'API_DISABLED',
        'Loading and unloading models is disabled; set enable_model_api=true',
      )
    await call.models.repository[what](model)
    return [200, { name: model, [what]: true }]
  })
}

/** Health and metadata of the server and its models. Accepts any method, as in TorchServe. */
async function statusOf({ models }: HttpCall, route: OpenInferenceRoute): Promise<JsonAnswer> {
  switch (route.kind) {
    case 'live':
      return [200, { live: true }]
    case 'ready': {
      const ready = await isServerReady(models)
      return [ready ? 200 : 503, { ready, live: true }]
    }
    case 'models':
      return [200, { models: models.statuses().map(({ name }) => name) }]
    case 'model':
      return [200, await modelMetadata(models, route.model, route.version)]
    case 'model ready': {
      const ready = await isModelReady(models, route.model, route.version)
      return [ready ? 200 : 503, { name: route.model, ready }]
    }
    default: {
      const facts = serverFacts()
      // TorchServe's misspelt key, with TorchServe's values.
      return [200, { ...facts, extenstion: facts.extensions.slice(0, 2) }]
    }
  }
}
