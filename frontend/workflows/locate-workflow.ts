import { stat } from 'node:fs/promises'
import type { DownloadLimits } from '../../model-archiver/download.ts'
import { locateModel, type LocatedModel } from '../../model-archiver/locate.ts'
import { ServeError } from '../../common/errors.ts'
import { redactUrl } from '../../common/texts.ts'

export interface WorkflowStoreOptions {
  /** Absolute path; undefined: none is configured. */
  readonly workflowStore: string | undefined
  readonly allowedUrls: readonly RegExp[]
  readonly download: DownloadLimits
}

/**
 * Finds a workflow archive by the rules for model archives; it must be a file.
 * @throws ServeError WORKFLOW_NOT_FOUND with TorchServe's messages, DOWNLOAD_FAILED, INTERNAL
 */
export async function locateWorkflow(
  url: string,
  { workflowStore, ...options }: WorkflowStoreOptions,
): Promise<LocatedModel> {
  if (workflowStore === undefined) throw notFound('Workflow store has not been configured.')
  const located = await locateModel(url, { modelStore: workflowStore, ...options }).catch(asWorkflowError)
  if (located.downloaded || (await stat(located.path)).isFile()) return located
  throw notFound(`Workflow not found at: ${redactUrl(url)}`)
}

function asWorkflowError(thrown: unknown): never {
  const error = ServeError.from(thrown)
  if (error.code !== 'MODEL_NOT_FOUND') throw error
  throw notFound(error.message.replace(/^Model not found at: /, 'Workflow not found in workflow store: '))
}

function notFound(message: string): ServeError {
  return new ServeError('WORKFLOW_NOT_FOUND', message)
}
