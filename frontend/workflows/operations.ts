import type { Job } from '../jobs/job.ts'

/**
 * The operations on workflows. Every method throws (or rejects with) a ServeError with TorchServe's message.
 */
export interface WorkflowOperations {
  /** Whether a workflow has that name. */
  has(name: string): boolean
  /**
   * Submits a job to the workflow that its request names as model. Later failures go to the job's sink.
   * @throws ServeError WORKFLOW_NOT_FOUND, SHUTTING_DOWN; the job is untouched then
   */
  submit(job: Job): void
  /**
   * Registers a workflow and all its nodes, and waits until they are loaded.
   * @returns the message for the client
   * @throws ServeError WORKFLOW_NOT_FOUND (no such archive), CONFLICT, INVALID_WORKFLOW, INVALID_DAG,
   *   UNTRUSTED_ARCHIVE, INVALID_ARCHIVE, DOWNLOAD_FAILED, WORKFLOW_NOT_REGISTERED; cleans up first
   */
  register(request: RegisterWorkflowRequest): Promise<string>
  /**
   * Gives running requests unregister_model_timeout to finish.
   * @throws ServeError WORKFLOW_NOT_FOUND, CLEANUP_TIMEOUT
   */
  unregister(name: string): Promise<string>
  /** `limit` and `nextPageToken` as for models. */
  list(limit?: number, nextPageToken?: number): WorkflowList
  /** @throws ServeError WORKFLOW_NOT_FOUND */
  describe(name: string): WorkflowDescription[]
}

export interface RegisterWorkflowRequest {
  url: string
  /** Default: the manifest's name. */
  workflowName?: string
  /** Seconds, for each node. */
  responseTimeout?: number
  /** Seconds, for each node. */
  startupTimeout?: number
  s3SseKms?: boolean
  /** The SHA-256 that the archive must have, in lowercase hex. */
  sha256?: string
}

export interface WorkflowList {
  nextPageToken?: string
  workflows: { workflowName: string; workflowUrl: string }[]
}

/** TorchServe's fields, in the order of its docs/workflow_management_api.md. */
export interface WorkflowDescription {
  workflowName: string
  workflowUrl: string
  minWorkers: number
  maxWorkers: number
  batchSize: number
  maxBatchDelay: number
  workflowDag: string
  /** Ours: SHA-256 of the archive. */
  archiveSha256: string
  /** Ours: whether the archive had to have this SHA-256. */
  archivePinned: boolean
}
