import type { ListedMethod } from '../../../common/handler-methods.ts'
import { ServeError } from '../../../common/errors.ts'
import type { Job } from '../../../frontend/jobs/job.ts'
import type { AbandonReason, JobHolder } from '../../../frontend/jobs/scheduler.ts'
import { jobLimits } from '../../../frontend/jobs/time-limit.ts'
import type {
  ModelDescription,
  ModelOperations,
  ModelStatus,
  OperationResult,
  RegisterRequest,
  Routed,
  RoutedRequest,
  ScaleRequest,
} from '../../../frontend/models/operations.ts'
import { FakeRepository } from '../fake-repository.ts'
import { FakeTraffic } from '../fake-traffic.ts'

const NO_LIMITS = jobLimits({ queue: 0, firstResponse: 0, gap: 0, total: 0 })

/** Models that a test plays: every job waits until the test answers it. The model `none` does not exist. */
export class FakeModels implements ModelOperations, JobHolder {
  readonly repository = new FakeRepository()
  readonly traffic = new FakeTraffic()
  /** The native methods of the handlers; those of the model `loading` are not known yet. */
  methods: readonly ListedMethod[] = []
  readonly calls: [string, unknown][] = []
  readonly jobs: Job[] = []
  readonly abandoned: { job: Job; reason: AbandonReason }[] = []
  readonly drainedJobs: Job[] = []
  /** Called at once for each job; absent: the job stays queued. */
  onJob: ((job: Job) => void) | undefined
  healthy = true
  startup: string[] = ['m']
  #wakers: (() => void)[] = []

  submit(job: Job): void {
    if (job.request.modelName === 'none') throw new ServeError('MODEL_NOT_FOUND', 'Model not found: none')
    if (job.request.modelVersion === '9') {
      throw new ServeError('VERSION_NOT_FOUND', 'Model version: 9 does not exist for model: m')
    }
    if (job.request.modelName === 'full') throw new ServeError('QUEUE_FULL', 'Model "full" has no worker')
    if (job.request.modelName === 'bug') throw new TypeError('secret detail')
    this.jobs.push(job)
    job.queued(this, NO_LIMITS)
    this.onJob?.(job)
    this.#wake()
  }

  /** A worker takes the job. */
  start(job: Job): void {
    job.started(this)
  }

  abandon(job: Job, reason: AbandonReason): void {
    this.abandoned.push({ job, reason })
    this.#wake()
  }

  drained(job: Job): void {
    this.drainedJobs.push(job)
    this.#wake()
  }

  /** Resolves when the condition holds; checked at every event here. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#wakers.push(resolve))
  }

  async nextJob(): Promise<Job> {
    const wanted = this.jobs.length + 1
    await this.until(() => this.jobs.length >= wanted)
    return this.jobs[wanted - 1]!
  }

  register(request: RegisterRequest): Promise<OperationResult> {
    this.calls.push(['register', request])
    return Promise.resolve({ state: request.synchronous ? 'done' : 'accepted', message: 'registered' })
  }

  scale(request: ScaleRequest): Promise<OperationResult> {
    this.calls.push(['scale', request])
    if (request.minWorker === 7) return Promise.resolve({ state: 'partial', message: 'scaling' })
    return Promise.resolve({ state: request.synchronous ? 'done' : 'accepted', message: 'scaled' })
  }

  setDefault(modelName: string, modelVersion: string): OperationResult {
    this.calls.push(['setDefault', [modelName, modelVersion]])
    return { state: 'done', message: 'default' }
  }

  unregister(modelName: string, modelVersion?: string): Promise<OperationResult> {
    this.calls.push(['unregister', [modelName, modelVersion]])
    if (modelVersion === '1') {
      return Promise.reject(new ServeError('DEFAULT_VERSION', 'Cannot remove default version for model m'))
    }
    return Promise.resolve({ state: 'done', message: 'unregistered' })
  }

  list(limit?: number, nextPageToken?: number) {
    this.calls.push(['list', [limit, nextPageToken]])
    return { nextPageToken: undefined, models: [{ modelName: 'm', modelUrl: 'm.mar' }] }
  }

  describe(modelName: string, modelVersion?: string, customized?: boolean): Promise<ModelDescription[]> {
    this.calls.push(['describe', [modelName, modelVersion, customized]])
    if (modelName === 'none') {
      return Promise.reject(new ServeError('MODEL_NOT_FOUND', 'Model not found: none'))
    }
    const workers = modelName === 'loading' ? [{ status: 'UNLOADING' }] : [{ status: 'READY' }]
    return Promise.resolve([{ modelName, modelVersion, workers } as unknown as ModelDescription])
  }

  status(name: string, version = '1.0'): ModelStatus {
    if (name === 'none') throw new ServeError('MODEL_NOT_FOUND', 'Model not found: none')
    if (version === '9') {
      throw new ServeError('VERSION_NOT_FOUND', 'Model version: 9 does not exist for model: m')
    }
    const native = ['chatCompletions', 'completions', 'embeddings'] as const
    const methods = name === 'native' ? native : name === 'loading' ? undefined : this.methods
    const config = name === 'body' ? { openai: { input: 'body' } } : {}
    return { name, version, registeredAt: 1_000, ready: methods !== undefined, methods, config }
  }

  route({ modelName, modelVersion }: RoutedRequest): Routed {
    return { status: this.status(modelName, modelVersion), routedTo: undefined, byWeight: false }
  }

  statuses(): ModelStatus[] {
    return [this.status('m')]
  }

  health(): 'Healthy' | 'Unhealthy' {
    return this.healthy ? 'Healthy' : 'Unhealthy'
  }

  loadedAtStartup(): string[] {
    return this.startup
  }

  unloadedAtStartup(): string[] {
    return []
  }

  #wake(): void {
    const wakers = this.#wakers
    this.#wakers = []
    for (const wake of wakers) wake()
  }
}
