import type { ServeError } from '../../common/errors.ts'
import type { ListedMethod } from '../../common/handler-methods.ts'
import type { TrafficSettings } from '../config/traffic-settings.ts'
import type { Job } from '../jobs/job.ts'
import type { JobRequest } from '../jobs/job-request.ts'

/**
 * The operations on models, for all protocols. Every method throws (or rejects with) a ServeError with
 * TorchServe's message.
 */
export interface ModelOperations {
  readonly repository: RepositoryOperations
  readonly traffic: TrafficOperations
  /**
   * Submits a job to a model.
   * @param caller who sent it, if that has a name
   * @throws ServeError MODEL_NOT_FOUND, VERSION_NOT_FOUND, NO_WORKER, MODEL_FAILED, QUEUE_FULL,
   *   SHUTTING_DOWN; the job is untouched then
   */
  submit(job: Job, caller?: Caller): void
  /**
   * The version that is to get a request, for dialects that read the request as its handler needs it. Every
   * call is a turn of the weights: make one for each request, and put `routedTo` into the job's.
   * @throws ServeError MODEL_NOT_FOUND, VERSION_NOT_FOUND
   */
  route(request: RoutedRequest, caller?: Caller): Routed
  register(request: RegisterRequest): Promise<OperationResult>
  scale(request: ScaleRequest): Promise<OperationResult>
  setDefault(modelName: string, modelVersion: string): OperationResult
  unregister(modelName: string, modelVersion?: string): Promise<OperationResult>
  /**
   * `limit` and `nextPageToken` out of range fall back to 100 and 0, as in TorchServe.
   * @param sees chooses the models by name; default: all
   */
  list(limit?: number, nextPageToken?: number, sees?: (name: string) => boolean): ModelList
  /** A version, the default version (undefined), or `all`. `customized` asks the handler for its metadata. */
  describe(modelName: string, modelVersion?: string, customized?: boolean): Promise<ModelDescription[]>
  /**
   * Unhealthy if a model's default version has fewer healthy workers than requested, as TorchServe's /ping.
   */
  health(): 'Healthy' | 'Unhealthy'
  /**
   * A version as the other dialects need it; undefined: the default version.
   * @throws ServeError MODEL_NOT_FOUND, VERSION_NOT_FOUND
   */
  status(modelName: string, modelVersion?: string): ModelStatus
  /** The default version of every model visible to clients, sorted by name. */
  statuses(): ModelStatus[]
  /** Names of the models loaded at start. @throws ServeError MODEL_NOT_READY while some are still to come */
  loadedAtStartup(): string[]
  /** Names of the models that the start was to load, and that no worker has loaded yet or can load. */
  unloadedAtStartup(): string[]
}

/** Who sends requests, if that has a name: an API key, the subject of a JWT, a client certificate. */
export interface Caller {
  readonly kind: string
  readonly name: string
}

/** What decides about the version of a request. */
export type RoutedRequest = Pick<JobRequest, 'modelName' | 'modelVersion' | 'headers' | 'routedTo'>

/** The version of a request. */
export interface Routed {
  readonly status: ModelStatus
  /** Undefined: nothing was to be chosen. */
  readonly routedTo: string | undefined
  /** Whether the model has weights: only then the client is told the version. */
  readonly byWeight: boolean
}

/** Weights between the versions of one model (docs/canary.md). */
export interface TrafficOperations {
  /**
   * Replaces the weights of a model. Counts and windows begin anew.
   * @throws ServeError MODEL_NOT_FOUND, VERSION_NOT_FOUND, CONFLICT when no worker has loaded a version yet
   */
  set(modelName: string, settings: TrafficSettings): Promise<TrafficDescription>
  /** @throws ServeError MODEL_NOT_FOUND */
  describe(modelName: string): TrafficDescription
  /**
   * Ends the weights: the default version gets all requests that name none.
   * @throws ServeError MODEL_NOT_FOUND
   */
  clear(modelName: string): Promise<TrafficDescription>
}

/** The weights of a model as they are now. */
export interface TrafficDescription extends TrafficSettings {
  modelName: string
  defaultVersion: string
  versions: VersionTraffic[]
}

/** The part of one version. The count is since the weights were set. */
export interface VersionTraffic {
  modelVersion: string
  weight: number
  /** From 0 to 1. */
  share: number
  /** Requests that were sent to it by weight. */
  requests: number
}

/** One version of a model, for the dialects beside TorchServe's. */
export interface ModelStatus {
  name: string
  version: string
  /** Milliseconds since the epoch. */
  registeredAt: number
  /** Whether a worker has loaded it, or the first request starts one. */
  ready: boolean
  /** What its requests are answered with, as no worker can load it; undefined: one may. */
  failure?: ServeError
  /** Methods of the handler; undefined until a worker has loaded it. */
  methods: readonly ListedMethod[] | undefined
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
  /** Batches that one worker runs at once; not settable by clients. */
  maxConcurrency?: number
  /** Maximum number of workers; default: initialWorkers. Set by snapshots only. */
  maxWorkers?: number
  /** Whether to wait until the workers have loaded the model. */
  synchronous: boolean
  s3SseKms?: boolean
  /** The SHA-256 that the archive must have, in lowercase hex. */
  sha256?: string
  /** Keys of model-config.yaml, over those of the model; not settable by clients. */
  config?: Readonly<Record<string, unknown>>
}

export interface ScaleRequest {
  modelName: string
  modelVersion?: string
  minWorker?: number
  maxWorker?: number
  synchronous: boolean
}

/** REST status: done 200, accepted 202, partial 206. gRPC answers OK with the message. */
export interface OperationResult {
  state: 'done' | 'accepted' | 'partial'
  message: string
  /** What the caller may not expect; absent: nothing. */
  warnings?: readonly string[]
}

export interface ModelList {
  nextPageToken?: string
  models: { modelName: string; modelUrl: string }[]
}

/** TorchServe's fields, in the order of its docs/management_api.md; additions are marked "ours". */
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
  /** Ours: number of open sequences; only with sequenceBatching. */
  openSequences?: number
  /** Ours: how its workers follow its load; absent: they do not. */
  scaling?: ScalingDescription
  /** Ours: SHA-256 of the archive; absent for model folders. */
  archiveSha256?: string
  /** Ours: whether the archive had to have this SHA-256; absent for model folders. */
  archivePinned?: boolean
  /** Ours: its part in the weights between versions; absent: it has none. */
  traffic?: Omit<VersionTraffic, 'modelVersion'>
  /** Ours: why requests are refused; absent while a worker has loaded the model or may still do so. */
  failure?: FailureDescription
  customizedMetadata?: Record<string, unknown>
}

/** How the workers of a model follow its load. Times are in seconds, targetQueueTime in milliseconds. */
export interface ScalingDescription {
  targetQueueTime: number
  scaleUpInterval: number
  scaleDownAfter: number
  scaleToZeroAfter: number
  /** Whether a request starts a worker if there is none. */
  wakes: boolean
}

/** Why no worker can load a model. */
export interface FailureDescription {
  /** The id in the log and in the answers to clients. */
  id: string
  /** yyyy-MM-dd'T'HH:mm:ss.SSS'Z' */
  at: string
  /** The whole cause, which clients do not get. */
  reason: string
}

export interface WorkerDescription {
  id: string
  /** yyyy-MM-dd'T'HH:mm:ss.SSS'Z' */
  startTime: string
  /** TorchServe's status words. */
  status: 'READY' | 'UNLOADING'
  memoryUsage: number
  pid: number
  /** Whether it has a GPU that can be used. */
  gpu: boolean
  gpuUsage: string
  /** Ours: starting, loading, ready, stopping, failed, ... */
  state: string
  /** Ours: number of requests at this worker. */
  inFlight: number
  /** Ours: the GPUs of this worker; absent on CPU. */
  deviceIds?: number[]
  /** Ours: what it computes on, such as `cuda:1`: `cpu` also if its GPU cannot be used. */
  device: string
  /** Ours: threads with which each of its processes computes, as they were told at its start. */
  threads: number
  /** Ours: number of restarts. */
  restarts: number
  /** Ours: why its process last ended, with its last lines on stderr. */
  lastExit?: { at: string; reason: string; stderr: string[] }
}

/** The model repository extension of the Open Inference Protocol (as in Triton and MLServer). */
export interface RepositoryOperations {
  /** Every registered version, and the unloaded models of the store. */
  index(onlyReady?: boolean): Promise<IndexEntry[]>
  /**
   * Loads every version of this name in the model store, or reloads the registered ones: the old version
   * serves until the new one can. Resolves when they are loaded.
   * @throws ServeError MODEL_NOT_FOUND, and errors of a registration
   */
  load(modelName: string): Promise<void>
  /** Unregisters every version. @throws ServeError MODEL_NOT_FOUND */
  unload(modelName: string): Promise<void>
}

export interface IndexEntry {
  name: string
  /** Empty for models that are not loaded. */
  version: string
  state: 'READY' | 'LOADING' | 'UNAVAILABLE'
  /** Why it is not ready; while it loads, its last failure. Otherwise empty. */
  reason: string
}
