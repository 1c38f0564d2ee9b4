import type { NativeMethod } from '../../common/handler-methods.ts'
import type { Job } from '../jobs/job.ts'

/**
 * What the protocols can ask of the models: one neutral interface, so that REST and gRPC are thin. Every method throws
 * (or rejects with) a ServeError whose message is TorchServe's (spec 1.3).
 */
export interface ModelOperations {
  readonly repository: RepositoryOperations
  /**
   * Takes a job for a model. @throws ServeError MODEL_NOT_FOUND, VERSION_NOT_FOUND, NO_WORKER, QUEUE_FULL,
   * SHUTTING_DOWN; the job has then not been touched.
   */
  submit(job: Job): void
  register(request: RegisterRequest): Promise<OperationResult>
  scale(request: ScaleRequest): Promise<OperationResult>
  setDefault(modelName: string, modelVersion: string): OperationResult
  unregister(modelName: string, modelVersion?: string): Promise<OperationResult>
  /** `limit` and `nextPageToken` out of range fall back to 100 and 0, as in TorchServe. */
  list(limit?: number, nextPageToken?: number): ModelList
  /** A version, the default version (undefined), or `all`. `customized` asks the handler for its metadata. */
  describe(modelName: string, modelVersion?: string, customized?: boolean): Promise<ModelDescription[]>
  /** Healthy unless a model's default version has fewer healthy workers than wanted (spec 1.5, /ping). */
  health(): 'Healthy' | 'Unhealthy'
  /** What the other dialects need to know of a version (undefined: the default). @throws ServeError MODEL_NOT_FOUND, VERSION_NOT_FOUND */
  status(modelName: string, modelVersion?: string): ModelStatus
  /** The default version of every model that clients may see, sorted by name. */
  statuses(): ModelStatus[]
  /** Names of the models that were loaded at start. */
  loadedAtStartup(): string[]
}

/** One version of a model as the dialects beside TorchServe's see it. */
export interface ModelStatus {
  name: string
  version: string
  /** Milliseconds since the epoch. */
  registeredAt: number
  /** Whether a worker has loaded it and can answer. */
  ready: boolean
  /** The native methods of the handler; undefined until a worker has loaded it. */
  methods: readonly NativeMethod[] | undefined
  /** The whole model-config.yaml. */
  config: Readonly<Record<string, unknown>>
  /** The envelope of its requests (docs/envelopes.md); undefined: none. */
  envelope?: string
}

export interface RegisterRequest {
  url: string
  modelName?: string
  handler?: string
  runtime?: string
  batchSize?: number
  /** Milliseconds. */
  maxBatchDelay?: number
  /** Seconds. */
  responseTimeout?: number
  /** Seconds. */
  startupTimeout?: number
  initialWorkers?: number
  /** Batches that one worker runs at once; no client can set it. */
  maxConcurrency?: number
  /** Upper bound of the workers; default: initialWorkers. Neither protocol can say it, a snapshot can. */
  maxWorkers?: number
  /** Wait until the workers are loaded. */
  synchronous: boolean
  s3SseKms?: boolean
}

export interface ScaleRequest {
  modelName: string
  modelVersion?: string
  minWorker?: number
  maxWorker?: number
  synchronous: boolean
}

/** REST answers done 200, accepted 202, partial 206; gRPC answers OK with the message. */
export interface OperationResult {
  state: 'done' | 'accepted' | 'partial'
  message: string
}

export interface ModelList {
  nextPageToken?: string
  models: { modelName: string; modelUrl: string }[]
}

/** Fields and their order are TorchServe's (spec 1.8); what is marked so is ours. */
export interface ModelDescription {
  modelName: string
  modelVersion: string
  modelUrl: string
  runtime: string
  minWorkers: number
  maxWorkers: number
  batchSize: number
  maxBatchDelay: number
  responseTimeout: number
  startupTimeout: number
  maxRetryTimeoutInSec: number
  clientTimeoutInMills: number
  parallelType: string
  parallelLevel: number
  deviceType: string
  deviceIds?: number[]
  continuousBatching: boolean
  useJobTicket: boolean
  useVenv: boolean
  stateful: boolean
  sequenceMaxIdleMSec: number
  sequenceTimeoutMSec: number
  maxNumSequence: number
  maxSequenceJobQueueSize: number
  loadedAtStartup: boolean
  workers: WorkerDescription[]
  jobQueueStatus: { remainingCapacity: number; pendingRequests: number }
  /** Ours: sequences that live now; only with sequenceBatching. */
  openSequences?: number
  customizedMetadata?: Record<string, unknown>
}

export interface WorkerDescription {
  id: string
  /** yyyy-MM-dd'T'HH:mm:ss.SSS'Z' */
  startTime: string
  /** READY or UNLOADING, as TorchServe says it. */
  status: 'READY' | 'UNLOADING'
  memoryUsage: number
  pid: number
  gpu: boolean
  gpuUsage: string
  /** Ours: starting, loading, ready, stopping, failed, ... */
  state: string
  /** Ours: requests that this worker has now. */
  inFlight: number
  /** Ours: the GPUs of this worker; absent on CPU. */
  deviceIds?: number[]
  /** Ours: how often it was started again. */
  restarts: number
  /** Ours: why its process ended the last time, with the last lines that it wrote to stderr. */
  lastExit?: { at: string; reason: string; stderr: string[] }
}

/** The model repository of the Open Inference Protocol (spec 1.1, 3.6). */
export interface RepositoryOperations {
  /** Every version that is registered, and what the model store holds beside them. */
  index(onlyReady?: boolean): Promise<IndexEntry[]>
  /**
   * Loads every version that the model store has under this name, or loads again what is registered: the old one goes on until the new one can
   * answer. Resolves when they are loaded. @throws ServeError MODEL_NOT_FOUND, and what a registration throws
   */
  load(modelName: string): Promise<void>
  /** Unregisters every version. @throws ServeError MODEL_NOT_FOUND */
  unload(modelName: string): Promise<void>
}

export interface IndexEntry {
  name: string
  /** Empty for what is not loaded. */
  version: string
  state: 'READY' | 'LOADING' | 'UNAVAILABLE'
  /** Why it is not ready; of one that loads: what it failed with before, if it did. Else empty. */
  reason: string
}
