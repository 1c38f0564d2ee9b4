import { describedPaths, type RestPath, undescribedPaths } from '../rest-dialect.ts'
import { DESCRIPTION_PATHS, INFERENCE_PATHS } from './api-description/inference-paths.ts'

/** The operation of an inference path (TorchServe's InferenceRequestHandler.java). */
export interface InferenceRoute {
  /** Undefined for /invocations, where the request or the only loaded model decides. */
  modelName: string | undefined
  modelVersion: string | undefined
  /** Whether query parameters become inputs of the handler. */
  queryInputs: boolean
  method: 'handle' | 'explain'
  /**
   * Whether the handler gets the header `explain`: for paths that have an explaining form, and for those
   * forms.
   */
  tellsExplain: boolean
  /** The rest of the path after the version, for the header `url_path`. Undefined: no such header. */
  urlPath: string | undefined
  /** The name is a workflow's. Absent: a model's. */
  workflow?: true
}

/** Paths that never explain and add no headers. */
const PLAIN = { method: 'handle', tellsExplain: false, urlPath: undefined } as const

/** First segments that cannot be the model of `/{m}/predict`. */
const RESERVED = new Set(['models', 'ping', 'metrics', 'token', 'workflows', 'api-description'])

/** Routes by the first segment of the path. */
export const INFERENCE_ROUTES: ReadonlyMap<
  string,
  (segments: readonly string[]) => InferenceRoute | undefined
> = new Map([
  ['predictions', (segments) => versioned(segments, 'handle')],
  ['explanations', (segments) => versioned(segments, 'explain')],
  ['invocations', ({ length }) => (length === 1 ? withQuery(undefined, undefined) : undefined)],
  ['models', invoke],
  ['wfpredict', ([, name]) => workflowRoute(name)],
  ['v1', kserveV1],
  ['v2', kserveV2],
])

/**
 * The inference route of a path; undefined if there is none. A path with an unknown first segment may be
 * `/{m}/predict`.
 */
export function inferenceRoute(segments: readonly string[]): InferenceRoute | undefined {
  return (INFERENCE_ROUTES.get(segments[0] ?? '') ?? legacy)(segments)
}

/** `/models/{m}/invoke`. */
function invoke(segments: readonly string[]): InferenceRoute | undefined {
  return segments.length === 3 && segments[2] === 'invoke' ? withQuery(segments[1], undefined) : undefined
}

function versioned(
  segments: readonly string[],
  method: InferenceRoute['method'],
): InferenceRoute | undefined {
  const modelName = segments[1]
  if (!modelName) return undefined
  return {
    modelName,
    modelVersion: segments[2] || undefined,
    queryInputs: false,
    method,
    tellsExplain: true,
    urlPath: segments.length > 3 ? segments.slice(3).join('/') : '',
  }
}

function withQuery(modelName: string | undefined, modelVersion: string | undefined): InferenceRoute {
  return { modelName, modelVersion, queryInputs: true, ...PLAIN }
}

function kserve(modelName: string | undefined, verb: string | undefined): InferenceRoute | undefined {
  if (!modelName || (verb !== 'predict' && verb !== 'explain')) return undefined
  const method = verb === 'explain' ? 'explain' : 'handle'
  return {
    modelName,
    modelVersion: undefined,
    queryInputs: false,
    method,
    tellsExplain: true,
    urlPath: undefined,
  }
}

/** `/wfpredict/{workflow}`; further segments are ignored, as in TorchServe. */
function workflowRoute(name: string | undefined): InferenceRoute | undefined {
  if (!name) return undefined
  return { modelName: name, modelVersion: undefined, queryInputs: false, workflow: true, ...PLAIN }
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

/** Paths of the inference API. Each accepts any method; OPTIONS returns the API description of the model. */
const OTHERS = [
  '/predictions/{model_name}',
  '/predictions/{model_name}/{model_version}',
  '/explanations/{model_name}',
  '/explanations/{model_name}/{model_version}',
  '/invocations',
  '/models/{model_name}/invoke',
  '/wfpredict/{workflow_name}',
  '/v1/models/{model_name}:predict',
  '/v1/models/{model_name}:explain',
  '/v2/models/{model_name}/infer',
  '/v2/models/{model_name}/explain',
  '/{model_name}/predict',
  '/{model_name}/{model_version}/predict',
]

export function inferencePaths(): RestPath[] {
  const described = describedPaths(INFERENCE_PATHS, 'inference', 'Inference').map((path) =>
    Object.hasOwn(DESCRIPTION_PATHS, path.path) ? { ...path, token: undefined } : path,
  )
  return [...described, ...undescribedPaths('inference', '*', OTHERS)]
}
