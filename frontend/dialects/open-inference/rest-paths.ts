import { type RestPath, undescribedPaths } from '../rest-dialect.ts'

const ANY_METHOD = [
  '/v2',
  '/v2/health/live',
  '/v2/health/ready',
  '/v2/models',
  '/v2/models/{model_name}',
  '/v2/models/{model_name}/ready',
  '/v2/models/{model_name}/versions/{model_version}',
  '/v2/models/{model_name}/versions/{model_version}/ready',
  '/v2/repository/index',
]

const INFER = ['infer', 'infer_stream', 'generate', 'generate_stream'].flatMap((kind) => [
  `/v2/models/{model_name}/${kind}`,
  `/v2/models/{model_name}/versions/{model_version}/${kind}`,
])

const MANAGE = ['load', 'unload'].map((what) => `/v2/repository/models/{model_name}/${what}`)

export function openInferencePaths(): RestPath[] {
  return [
    ...undescribedPaths('inference', '*', ANY_METHOD),
    ...undescribedPaths('inference', 'POST', INFER),
    ...undescribedPaths('management', 'POST', MANAGE),
  ]
}
