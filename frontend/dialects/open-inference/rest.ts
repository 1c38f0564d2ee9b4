import { ServeError } from '../../../common/errors.ts'
import { checkBody } from '../../../common/json-bounds.ts'
import { parseObject } from '../../../common/tensors/message.ts'
import { audited } from '../../edge/http/audited.ts'
import { readDecoded } from '../../edge/http/decoded-body.ts'
import type { Exchange } from '../../edge/http/exchange.ts'
import { isModelReady, isServerReady } from '../../models/readiness.ts'
import type { RestDialect } from '../rest-dialect.ts'
import { takesTensors } from './infer-job.ts'
import { modelMetadata, serverFacts } from './metadata.ts'
import { errorAnswer } from './rest-errors.ts'
import { infer } from './rest-infer.ts'
import { refuse as refuseReply, tell, type Told } from './rest-reply.ts'
import {
  type InferRoute,
  openInferencePaths,
  openInferenceRoute,
  type OpenInferenceRoute,
} from './rest-route.ts'

/** The Open Inference Protocol over REST: all paths below /v2 that are not TorchServe's or OpenAI's. */
export const openInference: RestDialect = { handle, paths: openInferencePaths, notFound, refuse }

/**
 * TorchServe also has the path `infer` without a version. It belongs to the protocol with
 * ts_open_inference_protocol, and for models whose handler has methods besides `handle`.
 */
function handle(exchange: Exchange): boolean {
  const route = routeOf(exchange)
  if (route === undefined) return false
  try {
    // Before anything shows whether the model is there.
    exchange.admit(route.kind === 'load' || route.kind === 'unload' ? 'management' : 'inference')
    if (isTorchServes(exchange, route)) return false
    answer(exchange, route)
  } catch (thrown) {
    refuseReply(exchange.reply, ServeError.from(thrown))
  }
  return true
}

function refuse(exchange: Exchange, error: ServeError): boolean {
  if (routeOf(exchange) === undefined) return false
  refuseReply(exchange.reply, error)
  return true
}

function routeOf({ target: { segments } }: Exchange): OpenInferenceRoute | undefined {
  return openInferenceRoute(segments)
}

/** Clients expect the protocol's `error` key in every 404 below /v2, including paths that only Triton has. */
function notFound({ target }: Exchange, error: ServeError): string | undefined {
  return target.segments[0] === 'v2' ? errorAnswer(error).json : undefined
}

function isTorchServes(exchange: Exchange, route: OpenInferenceRoute): boolean {
  const { settings } = exchange.state
  if (route.kind !== 'infer' || route.version !== undefined || settings.openInferenceProtocol) return false
  try {
    return !takesTensors(exchange.route(route.model, undefined).status)
  } catch {
    return false // for an unknown model, one body serves both kinds of clients
  }
}

function answer(exchange: Exchange, route: OpenInferenceRoute): void {
  switch (route.kind) {
    case 'infer':
    case 'infer_stream':
    case 'generate':
    case 'generate_stream':
      infer(exchange, route as InferRoute)
      return
    case 'index':
      index(exchange)
      return
    case 'load':
    case 'unload':
      manageAudited(exchange, route.kind, route.model)
      return
    default:
      tell(exchange.reply, told(exchange, route))
  }
}

/** `{"ready": true}` selects models that can serve requests. tritonclient sends no body at all. */
function index(exchange: Exchange): void {
  readDecoded(exchange, (error, body) => {
    const list = async (): Promise<Told> => {
      if (error !== undefined) throw error
      checkBody(body, exchange.state.settings.maxRequestElements)
      const onlyReady = body.byteLength > 0 && parseObject(body)['ready'] === true
      return [200, await exchange.models.repository.index(onlyReady)]
    }
    tell(exchange.reply, list())
  })
}

function manageAudited(exchange: Exchange, what: 'load' | 'unload', model: string): void {
  const run = (): Promise<Told> => manage(exchange, what, model)
  tell(exchange.reply, audited(exchange, `${what} model`, { model }, run, errorAnswer))
}

async function manage(
  { state, req, models }: Exchange,
  what: 'load' | 'unload',
  model: string,
): Promise<Told> {
  if (req.method !== 'POST') throw new ServeError('METHOD_NOT_ALLOWED', 'Method Not Allowed')
  if (!state.settings.enableModelApi)
    throw new ServeError(
      'API_DISABLED',
      'Loading and unloading models is disabled; set enable_model_api=true',
    )
  await models.repository[what](model)
  return [200, { name: model, [what]: true }]
}

/** Health and metadata of the server and its models. Accepts any method, as in TorchServe. */
async function told({ models }: Exchange, route: OpenInferenceRoute): Promise<Told> {
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
