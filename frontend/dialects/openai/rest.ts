import { ServeError } from '../../../common/errors.ts'
import { exactJson } from '../../../common/exact-json.ts'
import { isObject } from '../../../common/json.ts'
import { checkBody } from '../../../common/json-bounds.ts'
import { type Operation, OPERATIONS } from '../../../common/openai/types.ts'
import { readRequest } from '../../../common/openai/request.ts'
import { readDecoded } from '../../edge/http/body.ts'
import type { HttpCall } from '../../edge/http/http-call.ts'
import { EventStream } from '../../edge/http/sse.ts'
import { isServerReady, modelList, modelObject } from '../../models/readiness.ts'
import type { ModelOperations, ModelStatus } from '../../models/operations.ts'
import type { RestDialect } from '../rest-dialect.ts'
import { answerJson, BodySink, NativeSink, versionHeaders } from './rest-reply.ts'
import { requestAttributes, TracedEvents } from './gen-ai.ts'
import { mapEmbeddings } from './embeddings-mapping.ts'
import { openaiPaths, openaiRoute, type OpenAIRoute } from './rest-route.ts'
import { refusal } from './rest-errors.ts'
import { mapText } from './text-mapping.ts'

/** The OpenAI API (docs/openai.md). */
export const openai: RestDialect<OpenAIRoute> = {
  name: 'openai',
  route: routeOf,
  answer,
  refusal,
  paths: openaiPaths,
}

function routeOf(call: HttpCall): OpenAIRoute | undefined {
  const route = openaiRoute(call.target.segments)
  return route === undefined || isTorchServes(call, route) ? undefined : route
}

/**
 * On a port shared with the management API, /v1/models/{m} is TorchServe's route, which requires the
 * management token. Its response is the same.
 */
function isTorchServes({ state, target: { segments }, entered }: HttpCall, { model }: OpenAIRoute): boolean {
  if (state.listener !== 'shared' || entered) return false
  return segments[0] === 'v1' && segments.length === 3 && model !== undefined
}

function answer(call: HttpCall, route: OpenAIRoute): void {
  const { method, url } = call.req
  const { operation } = route
  call.admit(operation === 'health' ? undefined : 'inference')
  if (operation === 'unknown')
    throw new ServeError('ROUTE_NOT_FOUND', `${method!} ${url!.split('?', 1)[0]!} is not supported`)
  if (operation === 'health') {
    sendHealth(call)
    return
  }
  if (method !== (operation === 'models' ? 'GET' : 'POST'))
    throw new ServeError('METHOD_NOT_ALLOWED', `The method ${method!} is not supported here`)
  if (operation === 'models') {
    sendModels(call, route.model)
    return
  }
  if (operation === 'images') throw new ServeError('ROUTE_NOT_FOUND', 'Image generation is not supported')
  readDecoded(call, (body) => submit(call, { ...route, operation }, body))
}

/** Of the whole server, for probes, which have no token. The answers are those of llama-server. */
function sendHealth(call: HttpCall): void {
  const { models } = call.state.operations
  isServerReady(models)
    .then((ready) =>
      answerJson(call, ready ? 200 : 503, Buffer.from(JSON.stringify(ready ? OK : notReady(models)))),
    )
    .catch((thrown: unknown) => call.fail(thrown))
}

const OK = { status: 'ok' }

/** Names no model: anybody may ask. */
function notReady(models: ModelOperations): object {
  const message = models.unloadedAtStartup().some((name) => hasFailed(models, name))
    ? 'A model could not be loaded'
    : 'Loading model'
  return { error: { code: 503, message, type: 'unavailable_error' } }
}

function hasFailed(models: ModelOperations, name: string): boolean {
  try {
    models.status(name)
    return false
  } catch (thrown) {
    return ServeError.from(thrown).code === 'MODEL_FAILED'
  }
}

function sendModels(call: HttpCall, model: string | undefined): void {
  const { models } = call
  const json = model === undefined ? modelList(models.statuses()) : modelObject(models.status(model))
  answerJson(call, 200, Buffer.from(JSON.stringify(json)))
}

function submit(
  call: HttpCall,
  { operation, model: named, version: modelVersion }: OpenAIRoute & { operation: Operation },
  received: Buffer,
): void {
  checkBody(received, call.state.settings.maxRequestElements)
  const request = readRequest(operation, received, named)
  if (call.span?.recording === true) call.span.set(requestAttributes(request))
  const { status: model } = call.routeTo(request.body.model, modelVersion)
  if (model.methods === undefined) throw notLoaded(model)
  const events = eventsOf(call)
  const { path: urlPath, method } = OPERATIONS[operation]
  const asked = { modelName: model.name, modelVersion, urlPath }
  const native = model.methods.includes(method)
  if (native || takesBody(model)) {
    // If the path contains the model, the body need not name one.
    const data = named === undefined ? received : Buffer.from(exactJson(request.body))
    const parts = [{ name: 'body', contentType: 'application/json', data }]
    const sink = native ? new NativeSink(events, request) : new BodySink(events, request)
    const job = call.job({ ...asked, method: native ? method : 'handle', parts }, sink)
    if (call.reply.follow(job)) call.models.submit(job)
  } else if (request.operation === 'embeddings') mapEmbeddings(events, asked, request.body)
  else mapText(events, asked, request)
}

function eventsOf(call: HttpCall): EventStream {
  const { span, state } = call
  const heartbeatMs = state.settings.openaiHeartbeatInterval * 1000
  const events =
    span?.recording === true ? new TracedEvents(span, call, heartbeatMs) : new EventStream(call, heartbeatMs)
  events.headers = versionHeaders(call)
  return events
}

/** The methods of a handler are known only when a worker has loaded it. */
function notLoaded({ name, failure }: ModelStatus): ServeError {
  return failure ?? new ServeError('NO_WORKER', `The model ${name} is not loaded yet`)
}

/**
 * `openai: { input: body }` in model-config.yaml: the handler understands the API's bodies (docs/openai.md).
 */
function takesBody({ config }: ModelStatus): boolean {
  return isObject(config['openai']) && config['openai']['input'] === 'body'
}
