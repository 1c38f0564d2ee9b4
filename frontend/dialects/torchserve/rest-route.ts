/** What an inference path asks for (TorchServe: InferenceRequestHandler.java). */
export interface InferenceRoute {
  /** Undefined: /invocations, where the request or the only model decides. */
  modelName: string | undefined
  modelVersion: string | undefined
  /** Whether query parameters become inputs of the handler. */
  queryInputs: boolean
  /** Headers that the handler sees beside the client's own. */
  explain: 'True' | 'False' | undefined
  urlPath: string | undefined
  /** The name is a workflow's. Absent: a model's. */
  workflow?: true
}

/** First segments that never are the model of `/{m}/predict`. */
const RESERVED = new Set(['models', 'ping', 'metrics', 'token', 'workflows', 'api-description'])

/** By the first segment of the path. */
export const INFERENCE_ROUTES: ReadonlyMap<
  string,
  (segments: readonly string[]) => InferenceRoute | undefined
> = new Map([
  ['predictions', (segments) => versioned(segments, 'False')],
  ['explanations', (segments) => versioned(segments, 'True')],
  ['invocations', ({ length }) => (length === 1 ? withQuery(undefined, undefined) : undefined)],
  ['models', invoke],
  ['wfpredict', ([, name]) => workflowRoute(name)],
  ['v1', kserveV1],
  ['v2', kserveV2],
])

/**
 * The inference route of a path; undefined: it is none. What begins with no known segment may be
 * `/{m}/predict`.
 */
export function inferenceRoute(segments: readonly string[]): InferenceRoute | undefined {
  return (INFERENCE_ROUTES.get(segments[0] ?? '') ?? legacy)(segments)
}

/** `/models/{m}/invoke`. */
function invoke(segments: readonly string[]): InferenceRoute | undefined {
  return segments.length === 3 && segments[2] === 'invoke' ? withQuery(segments[1], undefined) : undefined
}

function versioned(segments: readonly string[], explain: 'True' | 'False'): InferenceRoute | undefined {
  const modelName = segments[1]
  if (!modelName) return undefined
  return {
    modelName,
    modelVersion: segments[2] || undefined,
    queryInputs: false,
    explain,
    urlPath: segments.length > 3 ? segments.slice(3).join('/') : '',
  }
}

function withQuery(modelName: string | undefined, modelVersion: string | undefined): InferenceRoute {
  return { modelName, modelVersion, queryInputs: true, explain: undefined, urlPath: undefined }
}

function kserve(modelName: string | undefined, verb: string | undefined): InferenceRoute | undefined {
  if (!modelName || (verb !== 'predict' && verb !== 'explain')) return undefined
  const explain = verb === 'explain' ? 'True' : 'False'
  return { modelName, modelVersion: undefined, queryInputs: false, explain, urlPath: undefined }
}

/** `/wfpredict/{workflow}`; what follows does not count, as in TorchServe. */
function workflowRoute(name: string | undefined): InferenceRoute | undefined {
  if (!name) return undefined
  const none = { modelVersion: undefined, explain: undefined, urlPath: undefined }
  return { ...none, modelName: name, queryInputs: false, workflow: true }
}

/** `/v1/models/{m}:predict` and `:explain`. */
function kserveV1(segments: readonly string[]): InferenceRoute | undefined {
  const last = segments[2]
  if (segments.length !== 3 || segments[1] !== 'models' || last === undefined) return legacy(segments)
  const colon = last.indexOf(':')
  return colon === -1 ? legacy(segments) : kserve(last.slice(0, colon), last.slice(colon + 1))
}

/** `/v2/models/{m}/infer` and `/explain`. */
function kserveV2(segments: readonly string[]): InferenceRoute | undefined {
  if (segments.length !== 4 || segments[1] !== 'models') return legacy(segments)
  return kserve(segments[2], segments[3] === 'infer' ? 'predict' : segments[3] === 'explain' ? 'explain' : '')
}

/** `/{m}/predict` and `/{m}/{v}/predict`. */
function legacy(segments: readonly string[]): InferenceRoute | undefined {
  const last = segments.length - 1
  if ((last !== 1 && last !== 2) || segments[last] !== 'predict') return undefined
  if (!segments[0] || RESERVED.has(segments[0])) return undefined
  return withQuery(segments[0], last === 2 ? segments[1] : undefined)
}
