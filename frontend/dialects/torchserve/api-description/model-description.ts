import type { Schema } from '../../../../common/openapi.ts'
import { object } from '../../openapi.ts'

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
