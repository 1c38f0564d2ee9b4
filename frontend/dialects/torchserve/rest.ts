import { ServeError } from '../../../common/errors.ts'
import { readParts } from '../../edge/http/body.ts'
import type { Exchange } from '../../edge/http/exchange.ts'
import { clientHeaders } from '../../edge/http/request-headers.ts'
import { Job } from '../../jobs/job.ts'
import type { JobRequest } from '../../jobs/job-request.ts'
import type { InputPart } from '../../../common/handler-methods.ts'
import type { RestDialect } from '../rest-dialect.ts'
import { modelInferenceDescription, workflowInferenceDescription } from './api-description/documents.ts'
import { inferencePaths } from './rest-paths.ts'
import { RestReply, sendJson } from './rest-reply.ts'
import { inferenceRoute, type InferenceRoute } from './rest-route.ts'

/** TorchServe's inference API: /ping and all inference paths. Its other paths are in rest-site.ts. */
export const torchserve: RestDialect = { handle, paths: inferencePaths }

/** Without promises and without own listeners, because this is the fast path. */
function handle(exchange: Exchange): boolean {
  const { segments } = exchange.target
  if (segments[0] === 'ping') {
    exchange.admit('inference')
    const status = exchange.models.health()
    sendJson(exchange.reply, status === 'Healthy' ? 200 : 500, { status })
    return true
  }
  const route = inferenceRoute(segments)
  if (route === undefined) return false
  exchange.admit('inference')
  if (exchange.req.method === 'OPTIONS') describe(exchange, route)
  else
    readParts(exchange, (error, parts) => {
      if (error === undefined) predict(exchange, route, parts)
      else exchange.state.errors.fail(exchange, error)
    })
  return true
}

/** OPTIONS: the API description of this model or workflow. @throws ServeError WORKFLOW_NOT_FOUND */
function describe(exchange: Exchange, route: InferenceRoute): void {
  const { state, reply, models, workflows } = exchange
  const modelName = route.modelName ?? chooseModel(exchange, [])
  if (route.workflow) {
    workflows.describe(modelName)
    sendJson(reply, 200, workflowInferenceDescription(modelName))
    return
  }
  models.describe(modelName, route.modelVersion).then(
    () => sendJson(reply, 200, modelInferenceDescription(modelName)),
    (thrown: unknown) => state.errors.fail(exchange, ServeError.from(thrown)),
  )
}

function predict(exchange: Exchange, route: InferenceRoute, body: InputPart[]): void {
  const { state, req, reply, requestId, target, routedTo } = exchange
  try {
    const parts = route.queryInputs && target.query !== '' ? [...queryParts(target.query), ...body] : body
    const request: JobRequest = {
      requestId,
      dialect: 'torchserve',
      sender: exchange,
      modelName: route.modelName ?? chooseModel(exchange, body),
      modelVersion: route.modelVersion,
      routedTo,
      method: route.method,
      ...clientHeaders(req),
      urlPath: route.urlPath,
      tellsExplain: route.tellsExplain,
      parts,
    }
    const job = new Job(request, new RestReply(reply, route.workflow))
    if (!reply.follow(job)) return
    if (route.workflow) exchange.workflows.submit(job)
    else exchange.models.submit(job)
  } catch (thrown) {
    state.errors.fail(exchange, ServeError.from(thrown))
  }
}

function queryParts(query: string): InputPart[] {
  const parts: InputPart[] = []
  for (const [name, value] of new URLSearchParams(query)) parts.push({ name, data: Buffer.from(value) })
  return parts
}

/** The model of /invocations: from the query, or the only one loaded at start, or from the form. */
function chooseModel({ models, target }: Exchange, body: InputPart[]): string {
  const named = new URLSearchParams(target.query).get('model_name')
  if (named) return named
  const loaded = models.loadedAtStartup()
  if (loaded.length === 1) return loaded[0]!
  const field = body.find((part) => part.name === 'model_name')
  if (field === undefined || field.data.byteLength === 0) {
    throw new ServeError('INVALID_ARGUMENT', 'Parameter model_name is required.')
  }
  return Buffer.from(field.data).toString()
}
