import { describedPaths, type RestPath, undescribedPaths } from '../rest-dialect.ts'
import { DESCRIPTION_PATHS, INFERENCE_PATHS } from './api-description/inference-paths.ts'

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
