import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { ServeError } from '../../../common/errors.ts'
import { Job } from '../../jobs/job.ts'
import type { ModelStatus } from '../../models/operations.ts'
import { nativeRequest } from './native-request.ts'
import { type Operation, OPERATIONS } from './operations.ts'
import { readRequest } from './request.ts'
import { admit } from '../../edge/http/admit.ts'
import { readDecoded } from '../../edge/http/decoded-body.ts'
import { parseTarget } from '../../edge/http/path.ts'
import { clientHeaders } from '../../edge/http/request-headers.ts'
import type { RestState } from '../../edge/http/rest-state.ts'
import { SseReply } from '../../edge/http/sse.ts'
import { mapBody } from './body-mapping.ts'
import type { OpenAICall } from './call.ts'
import { failReply } from './rest-fail-reply.ts'
import { mapEmbeddings } from './embeddings-mapping.ts'
import { mapText } from './text-mapping.ts'
import { modelList, modelObject } from './models.ts'
import { NativeSink } from './native-sink.ts'
import { openaiRoute, type OpenAIRoute } from './rest-route.ts'

/**
 * Answers the OpenAI API (spec 5). False: the path is none of it, and nothing was done. On a port that is the management API's as well
 * (`shared`) /v1/models/{m} is TorchServe's route, with the management token; its answer is the same.
 */
export function handleOpenAI(
  state: RestState,
  req: IncomingMessage,
  res: ServerResponse,
  shared = false,
): boolean {
  const reply = new SseReply(state, res, randomUUID(), state.settings.openaiHeartbeatInterval * 1000)
  try {
    const { segments } = parseTarget(req.url!)
    const route = openaiRoute(segments)
    if (
      route === undefined ||
      (shared && segments[0] === 'v1' && segments.length === 3 && route.model !== undefined)
    )
      return false
    if (req.method === 'OPTIONS') preflight(reply)
    else answer(state, req, res, reply, route)
  } catch (thrown) {
    failReply(reply, ServeError.from(thrown))
  }
  return true
}

function answer(
  state: RestState,
  req: IncomingMessage,
  res: ServerResponse,
  reply: SseReply,
  route: OpenAIRoute,
): void {
  admit(state, req, 'inference')
  if (route.operation === 'unknown')
    throw new ServeError('ROUTE_NOT_FOUND', `There is no ${req.method!} ${pathOf(req)}`)
  if (req.method !== (route.operation === 'models' ? 'GET' : 'POST'))
    throw new ServeError('METHOD_NOT_ALLOWED', `${req.method!} is not allowed here`)
  if (route.operation === 'models') {
    sendModels(state, reply, route.model)
    return
  }
  const { operation } = route
  if (operation === 'images') throw noImages()
  readDecoded(req, res, state.settings.maxRequestSize, (error, body) => {
    try {
      if (error !== undefined) throw error
      submit(state, req, reply, { ...route, operation }, body)
    } catch (thrown) {
      failReply(reply, ServeError.from(thrown))
    }
  })
}

function pathOf({ url }: IncomingMessage): string {
  return url!.split('?', 1)[0]!
}

function noImages(): ServeError {
  return new ServeError('ROUTE_NOT_FOUND', 'No handler of this server generates images')
}

function sendModels({ models }: RestState, reply: SseReply, model: string | undefined): void {
  const json = model === undefined ? modelList(models.statuses()) : modelObject(models.status(model))
  reply.answer(200, 'application/json', Buffer.from(JSON.stringify(json)))
}

/** What a browser asks before a request with an Authorization header; the CORS headers are the configured ones. */
function preflight(reply: SseReply): void {
  reply.answer(200, 'text/plain', Buffer.alloc(0), ['allow', 'GET, POST, OPTIONS'])
}

function submit(
  state: RestState,
  req: IncomingMessage,
  reply: SseReply,
  { operation, model: named, version: modelVersion }: OpenAIRoute & { operation: Operation },
  received: Buffer,
): void {
  const request = readRequest(operation, received, named)
  // Where the path names the model, the body may not.
  const body = named === undefined ? received : Buffer.from(JSON.stringify(request.body))
  const model = state.models.status(request.body.model, modelVersion)
  const { path: urlPath, method } = OPERATIONS[operation]
  const headers = clientHeaders(req)
  const call: OpenAICall = { state, reply, request, body, model, modelVersion, headers, urlPath }
  if (model.methods === undefined) throw notLoaded(model)
  if (model.methods.includes(method)) callNatively(call)
  else if (takesBody(model)) mapBody(call)
  else if (request.operation === 'embeddings') mapEmbeddings(call, request.body)
  else mapText(call, request)
}

/** Until a worker has loaded the handler nobody knows what it speaks. */
function notLoaded({ name }: ModelStatus): ServeError {
  return new ServeError('NO_WORKER', `The model ${name} is not loaded (yet)`)
}

function callNatively({ state, reply, request, body, modelVersion, headers, urlPath }: OpenAICall): void {
  const { stream, model: modelName } = request.body
  const facts = { requestId: reply.requestId, modelName, modelVersion, headers, urlPath }
  const job = new Job(nativeRequest(request.operation, body, facts), new NativeSink(reply, stream === true))
  if (reply.follow(job)) state.models.submit(job)
}

/** `openai: { input: body }` in model-config.yaml: the handler understands the API's bodies itself (docs/openai.md). */
function takesBody({ config }: ModelStatus): boolean {
  const openai = config['openai']
  return typeof openai === 'object' && openai !== null && (openai as { input?: unknown }).input === 'body'
}
