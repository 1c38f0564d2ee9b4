import type { OpenApi, PathItem, Schema } from '../../../../common/openapi.ts'
import { version } from '../../../package-info.ts'
import { prettyJson } from '../rest-reply.ts'
import { METRICS_PATHS, modelPaths, workflowPaths } from './inference-paths.ts'
import { MANAGEMENT_PATHS, MODEL_PATHS } from './management-paths.ts'
import { type ListenerKind, servesManagement } from '../../../edge/http/page-check.ts'
import { object, tagged } from '../../openapi.ts'
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

/** The response of describe: always a list. Contains only fields that exist. */
export function modelDescription(): Schema {
  const worker = object({
    id: ['string', 'Id of the worker.'],
    startTime: ['string', 'Start time of its process.'],
    status: {
      type: 'string',
      description: 'READY once its handler is loaded.',
      enum: ['READY', 'UNLOADING'],
    },
    memoryUsage: ['integer', 'Resident memory in bytes, 0 if unknown.'],
    pid: ['integer', 'Process id, -1 if unknown.'],
    gpu: ['boolean', 'Whether it has a GPU.'],
    gpuUsage: ['string', 'Utilization of the GPU, or N/A.'],
    device: ['string', 'What it computes on, such as cuda:1; cpu also if its GPU cannot be used.'],
    threads: ['integer', 'Number of threads with which each of its processes computes.'],
  })
  const queue = object({
    remainingCapacity: ['integer', 'Number of further requests that can wait.'],
    pendingRequests: ['integer', 'Number of waiting requests.'],
  })
  const model = object({
    modelName: ['string', 'Name of the model.'],
    modelVersion: ['string', 'Version of the model.'],
    modelUrl: ['string', 'URL or file that the model was registered from.'],
    runtime: ['string', 'Runtime of its workers.'],
    minWorkers: ['integer', 'Minimum number of workers.'],
    maxWorkers: ['integer', 'Maximum number of workers.'],
    batchSize: ['integer', 'Maximum number of requests per batch.'],
    maxBatchDelay: ['integer', 'Maximum time that a batch waits to fill, in milliseconds.'],
    responseTimeout: ['integer', 'Maximum time of a handler to respond, in seconds.'],
    startupTimeout: ['integer', 'Maximum time of a worker to load, in seconds.'],
    loadedAtStartup: ['boolean', 'Whether it was loaded when the server started.'],
    workers: { type: 'array', items: worker, description: 'Its workers.' },
    jobQueueStatus: queue,
  })
  return { type: 'array', items: model }
}
