import { rm, stat } from 'node:fs/promises'
import { downloadFailure, type DownloadLimits } from '../../model-archiver/download.ts'
import { type LocatedModel, locateModel } from '../../model-archiver/locate.ts'
import { ServeError } from '../../common/errors.ts'
import { redactUrl } from '../../common/texts.ts'
import { type PreparedWorkflow, prepareWorkflow } from '../../model-archiver/prepare-workflow.ts'
import { nameProblem } from '../../common/names.ts'
import type { Settings } from '../config/settings.ts'
import type { Metrics } from '../observe/metrics/metrics.ts'
import type { Job } from '../jobs/job.ts'
import type { JobIndex } from '../jobs/open-jobs.ts'
import { downloadLimits, unpackLimits } from '../models/located-model.ts'
import { workflowNotFound } from '../models/model-errors.ts'
import { pageOf } from '../models/operation-rules.ts'
import type {
  RegisterWorkflowRequest,
  WorkflowDescription,
  WorkflowList,
  WorkflowOperations,
} from './operations.ts'
import { type NodeModels, registerNodes, removeNodes } from './register-nodes.ts'
import { Workflow } from './workflow.ts'

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
async function locateWorkflow(
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

export interface WorkflowManagerOptions {
  settings: Settings
  metrics: Metrics
  /** Where open jobs are found by their ids. */
  jobs: JobIndex
  models: NodeModels
  warn: (message: string) => void
  /** Reports what was done, as one line. Default: nowhere. */
  inform?: (message: string) => void
}

/** All operations on workflows. */
export class WorkflowManager implements WorkflowOperations {
  readonly #options: WorkflowManagerOptions
  readonly #workflows = new Map<string, Workflow>()
  /** Names being registered. */
  readonly #registering = new Set<string>()
  readonly #stopping = new AbortController()
  #draining = false

  constructor(options: WorkflowManagerOptions) {
    this.#options = options
  }

  has(name: string): boolean {
    return this.#workflows.has(name)
  }

  submit(job: Job): void {
    this.#checkOpen()
    this.#get(job.request.modelName).submit(job)
  }

  async register(request: RegisterWorkflowRequest): Promise<string> {
    this.#checkOpen()
    checkName(request.workflowName)
    const { settings } = this.#options
    const { workflowStore, modelStore, allowedUrls, tempDir } = settings
    const { path, downloaded } = await locateWorkflow(request.url, {
      workflowStore: workflowStore ?? modelStore,
      allowedUrls,
      download: downloadLimits(settings, { s3SseKms: request.s3SseKms, signal: this.#stopping.signal }),
    }).catch((thrown: unknown) => {
      // The client does not get the cause.
      const told = downloadFailure(ServeError.from(thrown))
      if (told !== undefined) this.#options.warn(told)
      throw thrown
    })
    try {
      const prepared = await prepareWorkflow(path, tempDir, {
        limits: unpackLimits(settings),
        sha256: request.sha256,
        signal: this.#stopping.signal,
      })
      return await this.#registerPrepared(request, prepared, downloaded ? path : undefined)
    } catch (error) {
      if (downloaded) await rm(path, { force: true })
      throw error
    }
  }

  async unregister(name: string): Promise<string> {
    const workflow = this.#get(name)
    this.#workflows.delete(name)
    const graceMs = this.#options.settings.unregisterModelTimeout * 1000
    await workflow.drain(graceMs, new ServeError('NO_WORKER', `Workflow "${name}" was unregistered`))
    try {
      await removeNodes(workflow.plan.nodes.values(), this.#options.models, graceMs)
    } finally {
      await workflow.dispose()
    }
    return `Workflow "${name}" unregistered`
  }

  list(limit?: number, nextPageToken?: number): WorkflowList {
    const seen = [...this.#workflows.values()]
    const sorted = seen.sort((a, b) => (a.name < b.name ? -1 : 1))
    const { items, ...token } = pageOf(sorted, limit, nextPageToken)
    return { ...token, workflows: items.map(({ name, url }) => ({ workflowName: name, workflowUrl: url })) }
  }

  describe(name: string): WorkflowDescription[] {
    return [this.#get(name).describe()]
  }

  /** Refuses new jobs. */
  beginDrain(): void {
    this.#draining = true
  }

  /** Gives running requests `graceMs` milliseconds and ends the rest. Needs the nodes' models alive. */
  async drain(graceMs: number): Promise<void> {
    this.#draining = true
    this.#stopping.abort()
    await Promise.all([...this.#workflows.values()].map((workflow) => workflow.drain(graceMs)))
  }

  /** Removes their files. The models remove their nodes. */
  async dispose(): Promise<void> {
    await Promise.allSettled([...this.#workflows.values()].map((workflow) => workflow.dispose()))
  }

  /** Removes their files, synchronously: the process is about to exit. */
  kill(): void {
    for (const workflow of this.#workflows.values()) workflow.kill()
  }

  async #registerPrepared(
    request: RegisterWorkflowRequest,
    prepared: PreparedWorkflow,
    downloaded: string | undefined,
  ): Promise<string> {
    const name = request.workflowName ?? prepared.name
    let reserved = false
    try {
      this.#reserve(name)
      reserved = true
      const { responseTimeout, startupTimeout, s3SseKms } = request
      const settings = { responseTimeout, startupTimeout, s3SseKms }
      const nodes = await registerNodes(name, prepared, this.#options.models, settings)
      const workflow = this.#build(name, request, prepared, nodes, downloaded)
      this.#workflows.set(name, workflow)
      const { archiveSha256 } = workflow.describe()
      this.#options.inform?.(`Workflow ${name}: registered from ${workflow.url}, SHA-256 ${archiveSha256}`)
    } catch (error) {
      await prepared.dispose()
      throw error
    } finally {
      if (reserved) this.#registering.delete(name)
    }
    return `Workflow ${name} has been registered and scaled successfully.`
  }

  /** @throws ServeError CONFLICT */
  #reserve(name: string): void {
    if (this.#workflows.has(name) || this.#registering.has(name))
      throw new ServeError('CONFLICT', `Workflow ${name} is already registered.`)
    this.#registering.add(name)
  }

  #build(
    name: string,
    request: RegisterWorkflowRequest,
    prepared: PreparedWorkflow,
    nodes: Workflow['plan']['nodes'],
    downloaded: string | undefined,
  ): Workflow {
    const { settings, metrics, warn } = this.#options
    const plan = {
      dag: prepared.spec.dag,
      nodes,
      maxOutputBytes: settings.maxResponseSize,
      warn: (message: string) => {
        warn(`Workflow ${name}: ${message}`)
      },
    }
    const { jobs } = this.#options
    const url = redactUrl(request.url)
    const isPinned = request.sha256 !== undefined
    const requestTimeoutMs = settings.defaultRequestTimeout * 1000
    // TorchServe's version for nodes that name none.
    const counted = metrics.model(name, '1.0')
    return new Workflow({
      name,
      url,
      prepared,
      isPinned,
      plan,
      metrics: counted,
      jobs,
      requestTimeoutMs,
      downloaded,
    })
  }

  /** @throws ServeError WORKFLOW_NOT_FOUND */
  #get(name: string): Workflow {
    const workflow = this.#workflows.get(name)
    if (workflow === undefined) throw workflowNotFound(name)
    return workflow
  }

  /** @throws ServeError SHUTTING_DOWN */
  #checkOpen(): void {
    if (this.#draining) throw new ServeError('SHUTTING_DOWN', 'The server is shutting down')
  }
}

/** @throws ServeError INVALID_WORKFLOW */
function checkName(workflowName: string | undefined): void {
  const problem = workflowName === undefined ? undefined : nameProblem('Workflow name', workflowName)
  if (problem !== undefined) throw new ServeError('INVALID_WORKFLOW', problem)
}
