import { object, type Schema } from '../../openapi.ts'

/** What a describe answers: always a list, and only fields that are really there. */
export function modelDescription(): Schema {
  const worker = object({
    id: ['string', 'Its number.'],
    startTime: ['string', 'When its process was started.'],
    status: {
      type: 'string',
      description: 'READY once its handler is loaded.',
      enum: ['READY', 'UNLOADING'],
    },
    memoryUsage: ['integer', 'Bytes of memory, 0 if unknown.'],
    pid: ['integer', 'Its process, -1 if unknown.'],
    gpu: ['boolean', 'Whether it has a GPU.'],
    gpuUsage: ['string', 'What of the GPU is in use, or N/A.'],
  })
  const queue = object({
    remainingCapacity: ['integer', 'Requests that may still wait.'],
    pendingRequests: ['integer', 'Requests that wait now.'],
  })
  const model = object({
    modelName: ['string', 'Its name.'],
    modelVersion: ['string', 'Its version.'],
    modelUrl: ['string', 'Where it came from.'],
    runtime: ['string', 'What its workers are.'],
    minWorkers: ['integer', 'Workers at least.'],
    maxWorkers: ['integer', 'Workers at most.'],
    batchSize: ['integer', 'Requests that one batch may hold.'],
    maxBatchDelay: ['integer', 'Milliseconds that a batch may wait to fill up.'],
    responseTimeout: ['integer', 'Seconds that a handler may take to answer.'],
    startupTimeout: ['integer', 'Seconds that a worker may take to load.'],
    loadedAtStartup: ['boolean', 'Whether it was loaded when the server started.'],
    workers: { type: 'array', items: worker, description: 'Its workers.' },
    jobQueueStatus: queue,
  })
  return { type: 'array', items: model }
}
