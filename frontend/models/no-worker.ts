import { ServeError } from '../../common/errors.ts'
import type { Job } from '../jobs/job.ts'

/** What a client gets from a model without workers: TorchServe's sentence, stray quote included. */
export function noWorker(modelName: string, { request: { modelVersion, method } }: Job): ServeError {
  if (method === 'describe') {
    return new ServeError(
      'NO_WORKER',
      `Model "${modelName}" has no worker to serve describe request. Please use scale workers API to add workers.`,
    )
  }
  const version = modelVersion === undefined ? '' : ` Version ${modelVersion}"`
  return new ServeError(
    'NO_WORKER',
    `Model "${modelName}"${version} has no worker to serve inference request. Please use scale workers API to add ` +
      'workers. If this is a sequence inference, please check if it is closed, or expired; or exceeds ' +
      'maxSequenceJobQueueSize',
  )
}
