import { rm } from 'node:fs/promises'
import { removeSync } from '../../common/files.ts'
import type { PreparedWorkflow } from '../../model-archiver/prepare-workflow.ts'
import type { ServeError } from '../../common/errors.ts'
import type { ModelMetrics } from '../observe/metrics/model-metrics.ts'
import type { Job } from '../jobs/job.ts'
import { type JobLimits, jobLimits } from '../jobs/time-limit.ts'
import { type JobIndex, OpenJobs } from '../jobs/open-jobs.ts'
import { Execution, type Plan } from './execution.ts'
import type { WorkflowDescription } from './operations.ts'

export interface WorkflowOptions {
  name: string
  /** URL as registered. */
  url: string
  prepared: PreparedWorkflow
  /** Whether the register call named the SHA-256 of the archive. */
  isPinned: boolean
  plan: Plan
  metrics: ModelMetrics
  /** Index of open jobs by id. */
  jobs: JobIndex
  /** Milliseconds for the whole request; 0: no limit. Nodes have their own limits. */
  requestTimeoutMs: number
  /** Archive downloaded into the store; removed with the workflow. */
  downloaded: string | undefined
}

/** A registered workflow with its open requests. */
export class Workflow {
  readonly name: string
  readonly url: string
  readonly plan: Plan
  readonly #options: WorkflowOptions
  readonly #limits: JobLimits
  readonly #open: OpenJobs

  constructor(options: WorkflowOptions) {
    this.#options = options
    this.name = options.name
    this.url = options.url
    this.plan = options.plan
    this.#limits = jobLimits({ queue: 0, firstResponse: 0, gap: 0, total: options.requestTimeoutMs })
    this.#open = new OpenJobs(options.jobs, {
      gaps: options.metrics.tally.gaps,
      ended: (job) => options.metrics.ended(job),
    })
    options.metrics.watch(() => ({
      queued: 0,
      open: this.#open.size,
      streams: this.#open.progress().streams,
      workerStates: [],
    }))
  }

  /** Needs no limit: each request always has a job at a node, and the nodes' queues are bounded. */
  submit(job: Job): void {
    this.#options.metrics.requested(job)
    this.#open.add(job)
    const { parts } = job.request
    const execution = new Execution(this.plan, job)
    job.queued(execution, this.#limits)
    job.started(execution)
    execution.start(parts)
  }

  describe(): WorkflowDescription {
    const { prepared, isPinned } = this.#options
    const { defaults, dagText } = prepared.spec
    const { sha256 } = prepared.archive
    return {
      workflowName: this.name,
      workflowUrl: this.url,
      minWorkers: defaults.minWorkers,
      maxWorkers: defaults.maxWorkers,
      batchSize: defaults.batchSize,
      maxBatchDelay: defaults.maxBatchDelay,
      workflowDag: dagText,
      archiveSha256: sha256,
      archivePinned: isPinned,
    }
  }

  /** Waits up to `graceMs` milliseconds until no request is open; the rest fails with `reason`. */
  async drain(graceMs: number, reason?: ServeError): Promise<void> {
    await this.#open.drain(graceMs, reason)
  }

  /** Removes its files. */
  async dispose(): Promise<void> {
    const { metrics, prepared, downloaded } = this.#options
    metrics.unwatch()
    await prepared.dispose()
    if (downloaded !== undefined) await rm(downloaded, { force: true })
  }

  /** Removes the unpacked files, synchronously. */
  kill(): void {
    removeSync(this.#options.prepared.workDir)
  }
}
