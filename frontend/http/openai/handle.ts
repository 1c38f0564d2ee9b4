import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { DIALECT_HEADER } from '../../../protocol/dialects.ts'
import { ServeError } from '../../../protocol/errors.ts'
import { headerLine } from '../../../protocol/header-lines.ts'
import { Job, type InferenceRequest } from '../../models/job.ts'
import type { ModelStatus } from '../../models/operations.ts'
import { admit } from '../admit.ts'
import { readBody } from '../body.ts'
import { parseTarget } from '../path.ts'
import { handlerHeaders } from '../request-headers.ts'
import type { RestState } from '../rest-state.ts'
import { SseReply } from '../sse.ts'
import { mapBody } from './body-mapping.ts'
import { failReply } from './fail-reply.ts'
import { mapEmbeddings } from './embeddings-mapping.ts'
import { mapText } from './text-mapping.ts'
import { modelList, modelObject } from './models.ts'
import { NativeSink } from './native-sink.ts'
import { type OpenAIRequest, readRequest } from './request.ts'
import { OPERATIONS, openaiRoute, type OpenAIRoute, type Operation } from './route.ts'

/** One request on its way to a model: what the mappings need. */
export interface OpenAICall {
  readonly state: RestState
  readonly reply: SseReply
  readonly request: OpenAIRequest
  /** The body as it came. */
  readonly body: Buffer
  readonly model: ModelStatus
  /** Headers for the handler. */
  readonly headers: string
}

/** Answers the OpenAI API (spec 5). False: the path is none of it, and nothing was done. */
export function handleOpenAI(state: RestState, req: IncomingMessage, res: ServerResponse): boolean {
  const reply = new SseReply(state, res, randomUUID(), state.settings.openaiHeartbeatInterval * 1000)
  try {
    const route = openaiRoute(parseTarget(req.url!).segments)
    if (route === undefined) return false
    if (req.method === 'OPTIONS') preflight(reply)
    else answer(state, req, res, reply, route)
  } catch (thrown) {
    fail(state, reply, thrown)
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
  if (req.method !== (route.operation === 'models' ? 'GET' : 'POST'))
    throw new ServeError('METHOD_NOT_ALLOWED', `${req.method!} is not allowed here`)
  if (route.operation === 'models') {
    sendModels(state, reply, route.model)
    return
  }
  const { operation, model } = route
  readBody(req, res, state.settings.maxRequestSize, (error, body) => {
    try {
      if (error !== undefined) throw error
      submit(state, req, reply, operation, model, body)
    } catch (thrown) {
      fail(state, reply, thrown)
    }
  })
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
  operation: Operation,
  pathModel: string | undefined,
  body: Buffer,
): void {
  const request = readRequest(operation, body, pathModel)
  const model = state.models.status(request.body.model)
  const route = { urlPath: OPERATIONS[operation].path, explain: undefined } as const
  const headers = handlerHeaders(req, route)
  const call: OpenAICall = { state, reply, request, body, model, headers }
  if (model.dialects === undefined) throw notLoaded(model)
  if (model.dialects.includes(OPERATIONS[operation].dialect)) callNatively(call)
  else if (takesBody(model)) mapBody(call)
  else if (request.operation === 'embeddings') mapEmbeddings(call, request.body)
  else mapText(call, request)
}

/** Until a worker has loaded the handler nobody knows what it speaks. */
function notLoaded({ name }: ModelStatus): ServeError {
  return new ServeError('NO_WORKER', `The model ${name} is not loaded (yet)`)
}

function callNatively({ state, reply, request, body, headers }: OpenAICall): void {
  const { dialect } = OPERATIONS[request.operation]
  const { stream, model } = request.body
  const job = new Job(
    inferenceRequest(reply, model, headers + headerLine(DIALECT_HEADER, dialect), body),
    new NativeSink(reply, stream === true),
  )
  if (reply.follow(job)) state.models.submit(job)
}

function inferenceRequest(
  { requestId }: SseReply,
  modelName: string,
  headers: string,
  body: Buffer,
): InferenceRequest {
  return {
    requestId,
    modelName,
    headers,
    parts: [{ name: 'body', contentType: 'application/json', data: body }],
  }
}

/** `openai: { input: body }` in model-config.yaml: the handler understands the API's bodies itself (docs/openai.md). */
function takesBody({ config }: ModelStatus): boolean {
  const openai = config['openai']
  return typeof openai === 'object' && openai !== null && (openai as { input?: unknown }).input === 'body'
}

function fail(state: RestState, reply: SseReply, thrown: unknown): void {
  const error = ServeError.from(thrown)
  if (error.code === 'INTERNAL') {
    state.log.error({ requestId: reply.requestId, detail: error.detail }, error.message)
  }
  failReply(reply, error)
}
