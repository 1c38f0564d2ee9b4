import { ServeError } from '../../common/errors.ts'
import { processors } from '../../common/processors.ts'
import { redactUrl } from '../../common/texts.ts'
import { builtinTimeLimit } from '../../model-archiver/builtin-handlers.ts'
import type { Settings } from '../config/settings.ts'
import { versionSettings } from '../config/version-settings.ts'
import type { Metrics } from '../observe/metrics/metrics.ts'
import { workersThatFit } from './device-settings.ts'
import type { Tracing } from '../observe/traces/tracing.ts'
import type { LocatedModel } from './located-model.ts'
import { Model, type WorkerPoolFactory, type NodeOrigin } from './model.ts'
import type { ModelSettings } from './model-settings.ts'
import { checkSettings, checkWorkers, MAX_WORKERS } from './operation-rules.ts'
import { resolveModelSettings } from './resolve-model-settings.ts'
import type { RegisterRequest } from './operations.ts'
import type { JobIndex } from '../jobs/open-jobs.ts'
import { sequenceHeadersOf } from '../jobs/sequence-headers.ts'

export interface ManagerOptions {
  settings: Settings
  metrics: Metrics
  /** Where its open jobs are found by their ids. */
  jobs: JobIndex
  createPool: WorkerPoolFactory
  /** Makes spans of jobs; absent: tracing is off. */
  tracing?: Tracing
  /** Reports a problem that did not stop the operation, as one line; the lines of `detail` follow it. */
  warn: (message: string, detail?: string) => void
  /** Reports what was done, as one line. Default: nowhere. */
  inform?: (message: string) => void
  /** Number of this server's GPUs. Default 0. */
  gpuCount?: number
  /** Current usage of each GPU, for describe. Called only when a model runs on one. */
  gpuUsage?: () => Promise<ReadonlyMap<number, string>>
  /**
   * Installs a model's own dependencies below its temporary folder; stops early when `signal` aborts.
   * @throws ServeError DEPENDENCIES_FAILED, WORKER_START_FAILED
   */
  installDependencies?: (located: LocatedModel, signal: AbortSignal) => Promise<void>
  /**
   * Called after a change to the content of snapshots, and awaited before the client's answer. Never rejects.
   */
  onChange?: () => Promise<void>
}

/** Origin of a registration. */
export interface Origin {
  trusted: boolean
  atStartup: boolean
  /** Whether it is of a snapshot; default false. */
  restored?: boolean
  /** URL that describe shows; default: the url of the request. */
  url?: string
  workflowNode?: NodeOrigin
  /**
   * Called with the name and the version, before and after its dependencies are installed. With `displaces`
   * it may make them free. @throws ServeError CONFLICT
   */
  claim?: (name: string, version: string, displaces: boolean) => void
  /** Called when the registry has it. */
  added?: (model: Model) => void
}

/**
 * Builds a model from its files, its settings and its initial number of workers.
 * @throws ServeError INVALID_MODEL, NO_DEVICE
 */
export function buildModel(
  request: RegisterRequest,
  located: LocatedModel,
  origin: Origin,
  options: ManagerOptions,
): Model {
  const { prepared, name, pin, source } = located
  return new Model(
    {
      name,
      // Nothing needs the secrets any more: a restart finds what was downloaded in the store.
      url: redactUrl(origin.url ?? request.url),
      handlerOverride: request.handler,
      prepared,
      pin,
      source,
      settings: settingsOf(request, located, origin.atStartup, options),
      metrics: options.metrics.model(name, prepared.version),
      jobs: options.jobs,
      tracing: options.tracing,
      loadedAtStartup: origin.atStartup,
      restored: origin.restored,
      envelope: options.settings.serviceEnvelope ?? prepared.manifest.model.envelope,
      workflowNode: origin.workflowNode,
      maxRequestBytes: options.settings.maxRequestSize,
      sequenceHeaders: sequenceHeadersOf(options.settings),
    },
    options.createPool,
  )
}

/**
 * The effective settings of a model. Settings without effect are reported to `warn`.
 * @throws ServeError INVALID_MODEL when it cannot be served here, INVALID_ARGUMENT, NO_DEVICE
 */
export function settingsOf(
  request: RegisterRequest,
  { prepared, name }: LocatedModel,
  atStartup: boolean,
  { settings, warn, gpuCount = 0 }: Pick<ManagerOptions, 'settings' | 'warn' | 'gpuCount'>,
): ModelSettings {
  if (prepared.runtime === 'LSP') {
    throw new ServeError('INVALID_MODEL', `Model ${name}: runtime LSP (C++ workers) is not supported`)
  }
  const configured = versionSettings(settings, name, prepared.version)
  const { modelConfig, runtime } = prepared
  const limit = builtinTimeLimit(prepared.manifest.model.handler)
  const resolved = resolveModelSettings(request, modelConfig, configured, settings, gpuCount, runtime, limit)
  for (const warning of resolved.warnings) warn(`model-config of ${name}: ${warning}`)
  checkSettings(resolved.settings)
  const { minWorkers, maxWorkers } = firstWorkers(request, resolved.settings, settings, gpuCount, atStartup)
  checkWorkers({ ...resolved.settings, minWorkers, maxWorkers })
  const fit = workersThatFit(resolved.settings, gpuCount, name)
  return {
    ...resolved.settings,
    minWorkers: Math.min(minWorkers, fit),
    maxWorkers: Math.min(maxWorkers, fit),
  }
}

/**
 * Number of workers when neither the call nor the model sets it: at start as many as GPUs, else CPUs; at
 * register none. default_workers_per_model overrides both, and maxWorkers alone limits it. For a model that
 * scales, this number is the upper bound, whenever it is registered.
 */
function firstWorkers(
  request: RegisterRequest,
  own: Pick<ModelSettings, 'minWorkers' | 'maxWorkers' | 'scaling'>,
  settings: Settings,
  gpuCount: number,
  atStartup: boolean,
): Pick<Model, 'minWorkers' | 'maxWorkers'> {
  const scales = own.scaling !== undefined
  const isSaid = scales ? own.maxWorkers > 0 : own.minWorkers > 0
  if (isSaid || request.initialWorkers !== undefined) return own
  const devices = Math.min(gpuCount > 0 ? gpuCount : processors(), MAX_WORKERS)
  const count =
    settings.defaultWorkersPerModel > 0 ? settings.defaultWorkersPerModel : atStartup || scales ? devices : 0
  if (scales) return { minWorkers: own.minWorkers, maxWorkers: Math.max(own.minWorkers, count) }
  const workers = own.maxWorkers > 0 ? Math.min(count, own.maxWorkers) : count
  return { minWorkers: workers, maxWorkers: workers }
}
