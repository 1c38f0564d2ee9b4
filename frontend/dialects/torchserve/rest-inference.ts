import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { ServeError } from '../../../common/errors.ts'
import { type InferenceRequest, Job, type InputPart } from '../../jobs/job.ts'
import { admit } from '../../edge/http/admit.ts'
import { modelInferenceDescription, workflowInferenceDescription } from './api-description/documents.ts'
import { readParts } from '../../edge/http/body.ts'
import { inferenceTarget, type InferenceRoute } from './rest-route.ts'
import { handleOpenInference } from '../open-inference/rest.ts'
import { clientHeaders } from '../../edge/http/request-headers.ts'
import type { RestState } from '../../edge/http/rest-state.ts'
import { sendError } from '../../edge/http/send-error.ts'
import { sendJson } from '../../edge/http/send-json.ts'
import { HttpReplySink } from './rest-reply.ts'

/**
 * Answers /ping and everything that predicts. False: the path is none of these, and nothing was done. Written on node:http
 * alone, without promises and with no listeners of its own: this is the path whose speed counts.
 */
export function handleInference(state: RestState, req: IncomingMessage, res: ServerResponse): boolean {
  const requestId = randomUUID()
  try {
    const { segments, query, route } = inferenceTarget(req.url!)
    if (segments[0] === 'ping') {
      admit(state, req, 'inference')
      ping(state, res, requestId)
      return true
    }
    if (segments[0] === 'v2' && handleOpenInference(state, res, segments)) return true
    if (route === undefined) return false
    admit(state, req, 'inference')
    if (req.method === 'OPTIONS') describe(state, res, requestId, route, query)
    else predict(state, res, requestId, route, query)
  } catch (thrown) {
    sendError(state, res, requestId, ServeError.from(thrown))
  }
  return true
}

function ping(state: RestState, res: ServerResponse, requestId: string): void {
  const status = state.models.health()
  sendJson(state, res, requestId, status === 'Healthy' ? 200 : 500, { status })
}

/** OPTIONS: how this model or workflow is asked (spec 1.4). @throws ServeError WORKFLOW_NOT_FOUND */
function describe(
  state: RestState,
  res: ServerResponse,
  requestId: string,
  route: InferenceRoute,
  query: string,
): void {
  const modelName = route.modelName ?? chooseModel(state, query, [])
  if (route.workflow) {
    state.workflows.describe(modelName)
    sendJson(state, res, requestId, 200, workflowInferenceDescription(modelName))
    return
  }
  state.models.describe(modelName, route.modelVersion).then(
    () => sendJson(state, res, requestId, 200, modelInferenceDescription(modelName)),
    (thrown: unknown) => sendError(state, res, requestId, ServeError.from(thrown)),
  )
}

function predict(
  state: RestState,
  res: ServerResponse,
  requestId: string,
  route: InferenceRoute,
  query: string,
): void {
  readParts(res.req, res, state.settings.maxRequestSize, (error, parts) => {
    if (error === undefined) submit(state, res, requestId, route, query, parts)
    else sendError(state, res, requestId, error)
  })
}

function submit(
  state: RestState,
  res: ServerResponse,
  requestId: string,
  route: InferenceRoute,
  query: string,
  body: InputPart[],
): void {
  const sink = new HttpReplySink(state, res, requestId)
  try {
    const parts = route.queryInputs && query !== '' ? [...queryParts(query), ...body] : body
    const request: InferenceRequest = {
      requestId,
      modelName: route.modelName ?? chooseModel(state, query, body),
      modelVersion: route.modelVersion,
      method: route.method,
      headers: clientHeaders(res.req),
      urlPath: route.urlPath,
      tellsExplain: route.tellsExplain,
      parts,
    }
    const job = new Job(request, sink)
    if (!sink.follow(job)) return
    if (route.workflow) state.workflows.submit(job)
    else state.models.submit(job)
  } catch (thrown) {
    sink.fail(ServeError.from(thrown))
  }
}

function queryParts(query: string): InputPart[] {
  const parts: InputPart[] = []
  for (const [name, value] of new URLSearchParams(query)) parts.push({ name, data: Buffer.from(value) })
  return parts
}

/** The model of /invocations: named in the query, or the only one loaded at start, or named in the form. */
function chooseModel(state: RestState, query: string, body: InputPart[]): string {
  const named = new URLSearchParams(query).get('model_name')
  if (named) return named
  const loaded = state.models.loadedAtStartup()
  if (loaded.length === 1) return loaded[0]!
  const field = body.find((part) => part.name === 'model_name')
  if (field === undefined || field.data.byteLength === 0) {
    throw new ServeError('INVALID_ARGUMENT', 'Parameter model_name is required.')
  }
  return Buffer.from(field.data).toString()
}
