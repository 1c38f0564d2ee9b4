import { version } from '../../../package-info.ts'
import { prettyJson } from '../rest-errors.ts'
import { INFERENCE_PATHS, METRICS_PATHS, modelPaths, workflowPaths } from './inference-paths.ts'
import { MANAGEMENT_PATHS, MODEL_PATHS } from './management-paths.ts'
import { OPENAI_PATHS } from './openai-paths.ts'
import type { OpenApi, PathItem } from './openapi.ts'

/** What one listener serves. */
export type ListenerKind = 'inference' | 'management' | 'shared' | 'metrics'

const TITLE = 'TorchServe APIs'
const DESCRIPTION = 'TorchServe is a flexible and easy to use tool for serving deep learning models'

/** The whole API of a listener (spec 1.4), and the OpenAI API, which TorchServe does not have. */
export function listenerDescription(kind: ListenerKind): string {
  return prettyJson(
    document(
      { title: TITLE, description: DESCRIPTION, version },
      {
        ...(kind === 'inference' || kind === 'shared' ? { ...INFERENCE_PATHS, ...OPENAI_PATHS } : {}),
        ...(kind === 'management' || kind === 'shared' ? MANAGEMENT_PATHS : {}),
        ...METRICS_PATHS,
      },
    ),
  )
}

/** How clients ask a model. */
export function modelInferenceDescription(modelName: string): OpenApi {
  return document({ title: `RESTful API for: ${modelName}`, version: '1.0.0' }, modelPaths(modelName))
}

/** How clients ask a workflow. */
export function workflowInferenceDescription(name: string): OpenApi {
  return document({ title: `RESTful API for: ${name}`, version: '1.0.0' }, workflowPaths(name))
}

/** How a model is managed. */
export function modelManagementDescription(modelName: string): OpenApi {
  return document({ title: `RESTful Management API for: ${modelName}`, version }, MODEL_PATHS)
}

function document(info: OpenApi['info'], paths: Readonly<Record<string, PathItem>>): OpenApi {
  return { openapi: '3.0.1', info, paths }
}
