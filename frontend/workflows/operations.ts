import type { Job } from '../jobs/job.ts'

/** What the protocols can ask of the workflows. Every method throws (or rejects with) a ServeError whose message is TorchServe's. */
export interface WorkflowOperations {
  /** Whether a workflow has that name. */
  has(name: string): boolean
  /**
   * Takes a job for the workflow that its request names as its model. What goes wrong afterwards reaches the job's sink.
   * @throws ServeError WORKFLOW_NOT_FOUND, SHUTTING_DOWN; the job has then not been touched
   */
  submit(job: Job): void
  /**
   * Registers a workflow and all its nodes, and waits until they are loaded. @returns what to tell the client
   * @throws ServeError WORKFLOW_NOT_FOUND (no such archive), CONFLICT, INVALID_WORKFLOW, INVALID_DAG, INVALID_ARCHIVE,
   * DOWNLOAD_FAILED, WORKFLOW_NOT_REGISTERED; nothing is left behind then
   */
  register(request: RegisterWorkflowRequest): Promise<string>
  /** Lets running requests finish within unregister_model_timeout. @throws ServeError WORKFLOW_NOT_FOUND, CLEANUP_TIMEOUT */
  unregister(name: string): Promise<string>
  /** `limit` and `nextPageToken` as for models. */
  list(limit?: number, nextPageToken?: number): WorkflowList
  /** @throws ServeError WORKFLOW_NOT_FOUND */
  describe(name: string): WorkflowDescription[]
}

export interface RegisterWorkflowRequest {
  url: string
  /** Default: as the manifest has it. */
  workflowName?: string
  /** Seconds, for each node. */
  responseTimeout?: number
  /** Seconds, for each node. */
  startupTimeout?: number
  s3SseKms?: boolean
}

export interface WorkflowList {
  nextPageToken?: string
  workflows: { workflowName: string; workflowUrl: string }[]
}

/** Fields and their order are TorchServe's (spec 1.11). */
export interface WorkflowDescription {
  workflowName: string
  workflowUrl: string
  minWorkers: number
  maxWorkers: number
  batchSize: number
  maxBatchDelay: number
  workflowDag: string
}
