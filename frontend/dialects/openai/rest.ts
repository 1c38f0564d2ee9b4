import { ServeError } from '../../../common/errors.ts'
import { exactJson } from '../../../common/exact-json.ts'
import type { HandlerMethod } from '../../../common/handler-methods.ts'
import { isObject } from '../../../common/json.ts'
import { checkBody } from '../../../common/json-bounds.ts'
import { type Operation, OPERATIONS } from '../../../common/openai/types.ts'
import { readRequest } from '../../../common/openai/request.ts'
import { ANYBODY } from '../../auth/principal.ts'
import { readDecoded } from '../../edge/http/decoded-body.ts'
import type { Exchange } from '../../edge/http/exchange.ts'
import { clientHeaders } from '../../edge/http/request-headers.ts'
import { EventStream } from '../../edge/http/sse.ts'
import { Job } from '../../jobs/job.ts'
import { isServerReady, modelList, modelObject } from '../../models/readiness.ts'
import type { ModelOperations, ModelStatus } from '../../models/operations.ts'
import type { RestDialect } from '../rest-dialect.ts'
import { BodySink } from './body-sink.ts'
import type { OpenAICall } from './call.ts'
import { requestAttributes, TracedEvents } from './gen-ai.ts'
import { mapEmbeddings } from './embeddings-mapping.ts'
import { openaiPaths } from './rest-paths.ts'
import { answerJson, type EventSink, failReply, NativeSink, versionHeaders } from './rest-reply.ts'
import { openaiRoute, type OpenAIRoute } from './rest-route.ts'
import { mapText } from './text-mapping.ts'

/** The OpenAI API (docs/openai.md). */
export const openai: RestDialect = { handle, paths: openaiPaths, refuse }

function handle(exchange: Exchange): boolean {
  const route = routeOf(exchange)
  if (route === undefined) return false
  const events = eventsOf(exchange)
  try {
    answer(exchange, events, route)
  } catch (thrown) {
    failReply(events, ServeError.from(thrown))
  }
  return true
}

function eventsOf({ reply, span, state }: Exchange): EventStream {
  const heartbeatMs = state.settings.openaiHeartbeatInterval * 1000
  return span?.recording === true
    ? new TracedEvents(span, reply, heartbeatMs)
    : new EventStream(reply, heartbeatMs)
}

function refuse(exchange: Exchange, error: ServeError): boolean {
  if (routeOf(exchange) === undefined) return false
  failReply(new EventStream(exchange.reply), error)
  return true
}

function routeOf(exchange: Exchange): OpenAIRoute | undefined {
  const route = openaiRoute(exchange.target.segments)
  return route === undefined || isTorchServes(exchange, route) ? undefined : route
}

/**
 * On a port shared with the management API, /v1/models/{m} is TorchServe's route, which requires the
 * management token. Its response is the same.
 */
function isTorchServes({ state, target: { segments }, entered }: Exchange, { model }: OpenAIRoute): boolean {
  if (state.listener !== 'shared' || entered) return false
  return segments[0] === 'v1' && segments.length === 3 && model !== undefined
}

function answer(exchange: Exchange, events: EventStream, route: OpenAIRoute): void {
  const { method, url } = exchange.req
  const { operation } = route
  exchange.admit(operation === 'health' ? undefined : 'inference')
  if (operation === 'unknown')
    throw new ServeError('ROUTE_NOT_FOUND', `${method!} ${url!.split('?', 1)[0]!} is not supported`)
  if (operation === 'health') {
    sendHealth(exchange, events)
    return
  }
  if (method !== (operation === 'models' ? 'GET' : 'POST'))
    throw new ServeError('METHOD_NOT_ALLOWED', `The method ${method!} is not supported here`)
  if (operation === 'models') {
    sendModels(exchange, route.model)
    return
  }
  if (operation === 'images') throw new ServeError('ROUTE_NOT_FOUND', 'Image generation is not supported')
  readDecoded(exchange, (error, body) => {
    try {
      if (error !== undefined) throw error
      submit(exchange, events, { ...route, operation }, body)
    } catch (thrown) {
      failReply(events, ServeError.from(thrown))
    }
  })
}

/** Of the whole server, for probes, which have no token. The answers are those of llama-server. */
function sendHealth({ state, reply }: Exchange, events: EventStream): void {
  const { models } = state.operationsFor(ANYBODY)
  isServerReady(models).then(
    (ready) =>
      answerJson(reply, ready ? 200 : 503, Buffer.from(JSON.stringify(ready ? OK : notReady(models)))),
    (thrown: unknown) => failReply(events, ServeError.from(thrown)),
  )
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

function sendModels({ models, reply }: Exchange, model: string | undefined): void {
  const json = model === undefined ? modelList(models.statuses()) : modelObject(models.status(model))
  answerJson(reply, 200, Buffer.from(JSON.stringify(json)))
}

function submit(
  exchange: Exchange,
  events: EventStream,
  { operation, model: named, version: modelVersion }: OpenAIRoute & { operation: Operation },
  received: Buffer,
): void {
  checkBody(received, exchange.state.settings.maxRequestElements)
  const request = readRequest(operation, received, named)
  if (exchange.span?.recording === true) exchange.span.set(requestAttributes(request))
  // If the path contains the model, the body need not name one.
  const body = named === undefined ? received : Buffer.from(exactJson(request.body))
  const { status: model, routedTo } = exchange.route(request.body.model, modelVersion)
  events.headers = versionHeaders(exchange)
  const { path: urlPath, method } = OPERATIONS[operation]
  const facts = {
    requestId: exchange.requestId,
    dialect: 'openai',
    sender: exchange,
    modelName: model.name,
    modelVersion,
    routedTo,
    ...clientHeaders(exchange.req),
    urlPath,
  }
  const call: OpenAICall = { exchange, events, request, body, facts }
  if (model.methods === undefined) throw notLoaded(model)
  if (model.methods.includes(method)) submitBody(call, method, new NativeSink(events, request))
  else if (takesBody(model)) submitBody(call, 'handle', new BodySink(events, request))
  else if (request.operation === 'embeddings') mapEmbeddings(call, request.body)
  else mapText(call, request)
}

/** The methods of a handler are known only when a worker has loaded it. */
function notLoaded({ name, failure }: ModelStatus): ServeError {
  return failure ?? new ServeError('NO_WORKER', `The model ${name} is not loaded yet`)
}

/** For handlers that understand the API's bodies: the part `body` is the whole request. */
function submitBody({ exchange, body, facts }: OpenAICall, method: HandlerMethod, sink: EventSink): void {
  const parts = [{ name: 'body', contentType: 'application/json', data: body }]
  const job = new Job({ ...facts, method, parts }, sink)
  if (exchange.reply.follow(job)) exchange.models.submit(job)
}

/**
 * `openai: { input: body }` in model-config.yaml: the handler understands the API's bodies (docs/openai.md).
 */
function takesBody({ config }: ModelStatus): boolean {
  return isObject(config['openai']) && config['openai']['input'] === 'body'
}
