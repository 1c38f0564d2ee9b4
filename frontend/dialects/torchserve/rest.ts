import { ServeError } from '../../../common/errors.ts'
import { readParts } from '../../edge/http/body.ts'
import type { HttpCall } from '../../edge/http/http-call.ts'
import type { InputPart } from '../../../common/handler-methods.ts'
import type { RestDialect } from '../rest-dialect.ts'
import { modelInferenceDescription, workflowInferenceDescription } from './api-description/documents.ts'
import { inferencePaths, inferenceRoute, type InferenceRoute } from './rest-route.ts'
import { RestReply, sendJson } from './rest-reply.ts'

/** TorchServe's inference API: /ping and all inference paths. Its other paths are in rest-site.ts. */
export const torchserve: RestDialect<InferenceRoute | 'ping'> = {
  name: 'torchserve',
  route: ({ target: { segments } }) => (segments[0] === 'ping' ? 'ping' : inferenceRoute(segments)),
  answer,
  paths: inferencePaths,
}

/** Without promises and without own listeners, because this is the fast path. */
function answer(call: HttpCall, route: InferenceRoute | 'ping'): void {
  call.admit('inference')
  if (route === 'ping') {
    const status = call.models.health()
    sendJson(call, status === 'Healthy' ? 200 : 500, { status })
  } else if (call.req.method === 'OPTIONS') describe(call, route)
  else readParts(call, (parts) => predict(call, route, parts))
}

/** OPTIONS: the API description of this model or workflow. @throws ServeError WORKFLOW_NOT_FOUND */
function describe(call: HttpCall, route: InferenceRoute): void {
  const { models, workflows } = call
  const modelName = route.modelName ?? chooseModel(call, [])
  if (route.workflow) {
    workflows.describe(modelName)
    sendJson(call, 200, workflowInferenceDescription(modelName))
    return
  }
  models.describe(modelName, route.modelVersion).then(
    () => sendJson(call, 200, modelInferenceDescription(modelName)),
    (thrown: unknown) => call.fail(thrown),
  )
}

function predict(call: HttpCall, route: InferenceRoute, body: InputPart[]): void {
  const { reply, target } = call
  const { modelVersion, method, urlPath, tellsExplain, workflow } = route
  const parts = route.queryInputs && target.query !== '' ? [...queryParts(target.query), ...body] : body
  const modelName = route.modelName ?? chooseModel(call, body)
  const own = { modelName, modelVersion, method, urlPath, tellsExplain, parts }
  const job = call.job(own, new RestReply(call, workflow))
  if (!reply.follow(job)) return
  if (workflow) call.workflows.submit(job)
  else call.models.submit(job)
}

function queryParts(query: string): InputPart[] {
  const parts: InputPart[] = []
  for (const [name, value] of new URLSearchParams(query)) parts.push({ name, data: Buffer.from(value) })
  return parts
}

/** The model of /invocations: from the query, or the only one loaded at start, or from the form. */
function chooseModel({ models, target }: HttpCall, body: InputPart[]): string {
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
