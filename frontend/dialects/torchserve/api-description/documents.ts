import type { OpenApi, PathItem } from '../../../../common/openapi.ts'
import { version } from '../../../package-info.ts'
import { prettyJson } from '../rest-errors.ts'
import { METRICS_PATHS, modelPaths, workflowPaths } from './inference-paths.ts'
import { MANAGEMENT_PATHS, MODEL_PATHS } from './management-paths.ts'
import { type ListenerKind, servesManagement } from '../../../edge/http/page-check.ts'
import { tagged } from '../../openapi.ts'
import type { RestPath } from '../../rest-dialect.ts'

const TITLE = 'TorchServe APIs'
const DESCRIPTION = 'TorchServe is a flexible and easy to use tool for serving deep learning models'

/** The complete API of a listener; `paths` are those of its dialects. */
export function listenerDescription(kind: ListenerKind, paths: readonly RestPath[]): string {
  const items = {
    ...pathItems(paths),
    ...(servesManagement(kind) ? tagged(MANAGEMENT_PATHS, 'Management') : {}),
    ...METRICS_PATHS,
  }
  return prettyJson(document({ title: TITLE, description: DESCRIPTION, version }, items))
}

/** The described paths, by path and method. */
function pathItems(paths: readonly RestPath[]): Record<string, PathItem> {
  const items = new Map<string, PathItem>()
  for (const { path, method, operation } of paths) {
    if (operation !== undefined) items.set(path, { ...items.get(path), [method.toLowerCase()]: operation })
  }
  return Object.fromEntries(items)
}

/** How to call a model. */
export function modelInferenceDescription(modelName: string): OpenApi {
  return document({ title: `RESTful API for: ${modelName}`, version: '1.0.0' }, modelPaths(modelName))
}

/** How to call a workflow. */
export function workflowInferenceDescription(name: string): OpenApi {
  return document({ title: `RESTful API for: ${name}`, version: '1.0.0' }, workflowPaths(name))
}

/** How to manage a model. */
export function modelManagementDescription(modelName: string): OpenApi {
  return document({ title: `RESTful Management API for: ${modelName}`, version }, MODEL_PATHS)
}

function document(info: OpenApi['info'], paths: Readonly<Record<string, PathItem>>): OpenApi {
  return { openapi: '3.0.1', info, paths }
}
