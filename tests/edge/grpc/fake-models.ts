import { ServeError } from '../../../common/errors.ts'
import type { Job } from '../../../frontend/jobs/job.ts'
import type { AbandonReason, JobHolder } from '../../../frontend/jobs/scheduler.ts'
import { jobLimits } from '../../../frontend/jobs/time-limit.ts'
import type { JobResponse } from '../../../frontend/jobs/reply-sink.ts'
import type { InputPart } from '../../../common/handler-methods.ts'
import type {
  ModelDescription,
  ModelList,
  ModelOperations,
  ModelStatus,
  OperationResult,
  RegisterRequest,
  RepositoryOperations,
  Routed,
  RoutedRequest,
  ScaleRequest,
} from '../../../frontend/models/operations.ts'
import { FakeRepository } from '../../support/fake-repository.ts'
import { FakeTraffic } from '../../support/fake-traffic.ts'

const NO_LIMITS = jobLimits({ queue: 0, firstResponse: 0, gap: 0, total: 0 })

/** One job as a worker would have it; what the frontend tells the worker is written down. */
export class Work implements JobHolder {
  readonly job: Job
  /** The inputs, which a job keeps only until it runs. */
  readonly parts: readonly InputPart[]
  readonly abandoned: Promise<AbandonReason>
  abandonReason: AbandonReason | undefined
  onDrained: () => void = () => undefined
  #abandon!: (reason: AbandonReason) => void

  constructor(job: Job) {
    this.job = job
    this.parts = job.request.parts
    this.abandoned = new Promise((resolve) => (this.#abandon = resolve))
    job.queued(this, NO_LIMITS)
    job.started(this)
  }

  abandon(_job: Job, reason: AbandonReason): void {
    this.abandonReason = reason
    this.#abandon(reason)
  }

  drained(): void {
    this.onDrained()
  }

  respond(body: string | Uint8Array, more?: boolean, head: Partial<JobResponse> = {}): boolean {
    return this.job.respond({ body: Buffer.from(body), more, status: 200, headers: {}, ...head })
  }
}

/** Models for one test: `onWork` is the handler, the operations write down what they were asked. */
export class FakeModels implements ModelOperations {
  readonly repository: RepositoryOperations = new FakeRepository()
  readonly traffic = new FakeTraffic()
  onWork: (work: Work) => void = (work) => work.respond('ok')
  healthy = true
  /** Names of models; `loading` has no worker yet. */
  startup: string[] = []
  readonly works: Work[] = []
  readonly asked: unknown[][] = []
  /** What the next management operation throws. */
  failure: ServeError | undefined
  #waiting: ((work: Work) => void) | undefined

  submit(job: Job): void {
    if (this.failure) throw this.failure
    if (job.request.modelName === 'none') throw new ServeError('MODEL_NOT_FOUND', 'Model not found: none')
    const work = new Work(job)
    this.works.push(work)
    this.onWork(work)
    this.#waiting?.(work)
  }

  /** Lets the next job wait for the test instead of answering it. */
  nextWork(): Promise<Work> {
    this.onWork = () => undefined
    return new Promise((resolve) => (this.#waiting = resolve))
  }

  async register(request: RegisterRequest): Promise<OperationResult> {
    return this.#operation('register', request)
  }

  async scale(request: ScaleRequest): Promise<OperationResult> {
    return this.#operation('scale', request)
  }

  setDefault(modelName: string, modelVersion: string): OperationResult {
    return this.#operation('setDefault', modelName, modelVersion)
  }

  async unregister(modelName: string, modelVersion?: string): Promise<OperationResult> {
    return this.#operation('unregister', modelName, modelVersion)
  }

  list(limit?: number, nextPageToken?: number): ModelList {
    this.#operation('list', limit, nextPageToken)
    return { models: [{ modelName: 'echo', modelUrl: 'echo.mar' }] }
  }

  async describe(
    modelName: string,
    modelVersion?: string,
    customized?: boolean,
  ): Promise<ModelDescription[]> {
    this.#operation('describe', modelName, modelVersion, customized)
    if (modelName === 'none') throw new ServeError('MODEL_NOT_FOUND', 'Model not found: none')
    const status = modelName === 'loading' ? 'UNLOADING' : 'READY'
    const versions = modelVersion === 'all' ? ['1.0', '2.0'] : ['1.0']
    return versions.map(
      (each) => ({ modelName, modelVersion: each, minWorkers: 1, workers: [{ status }] }) as ModelDescription,
    )
  }

  status(name: string, version = '1.0'): ModelStatus {
    if (name === 'none') throw new ServeError('MODEL_NOT_FOUND', 'Model not found: none')
    return { name, version, registeredAt: 1_000, ready: true, methods: [], config: {} }
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

  #operation(...asked: unknown[]): OperationResult {
    this.asked.push(asked)
    if (this.failure) throw this.failure
    return { state: 'accepted', message: 'Processing worker updates...' }
  }
}
