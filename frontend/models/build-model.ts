import { availableParallelism } from 'node:os'
import { ServeError } from '../../common/errors.ts'
import { ownValue } from '../../common/own-keys.ts'
import { redactUrl } from '../../common/redact.ts'
import type { Settings } from '../config/settings.ts'
import type { Metrics } from '../observe/metrics/metrics.ts'
import { workersThatFit } from './device-settings.ts'
import type { LocatedModel } from './located-model.ts'
import { Model, type WorkerPoolFactory, type WorkflowNodeKind } from './model.ts'
import type { ModelSettings } from './model-settings.ts'
import { resolveModelSettings } from './resolve-model-settings.ts'
import type { RegisterRequest } from './operations.ts'
import { sequenceHeadersOf } from '../jobs/sequence-headers.ts'

export interface ManagerOptions {
  settings: Settings
  metrics: Metrics
  createPool: WorkerPoolFactory
  /** One line about something that went on although it was not right. */
  warn: (message: string) => void
  /** GPUs of this server. Default 0. */
  gpuCount?: number
  /** What each GPU does now, for describe; asked only where a model runs on one. */
  gpuUsage?: () => Promise<ReadonlyMap<number, string>>
  /**
   * Installs what a model brings along for itself alone, below its temporary folder; ends early when `signal` says so.
   * @throws ServeError DEPENDENCIES_FAILED, WORKER_START_FAILED
   */
  installDependencies?: (located: LocatedModel, signal: AbortSignal) => Promise<void>
  /** Something changed that a snapshot holds. Awaited before the client hears of it. Never rejects. */
  onChange?: () => Promise<void>
}

/** Where a registration comes from. */
export interface Origin {
  trusted: boolean
  atStartup: boolean
  /** As describe shall show it; default: the url of the request. */
  url?: string
  workflowNode?: WorkflowNodeKind
}

/**
 * A model from its files, its settings and the number of workers that it shall have at first.
 * @throws ServeError INVALID_MODEL, NO_DEVICE
 */
export function buildModel(
  request: RegisterRequest,
  located: LocatedModel,
  origin: Origin,
  options: ManagerOptions,
): Model {
  const { prepared, name } = located
  return new Model(
    {
      name,
      // Nothing needs the secrets any more: a restart finds what was downloaded in the store.
      url: redactUrl(origin.url ?? request.url),
      handlerOverride: request.handler,
      prepared,
      settings: settingsOf(request, located, origin.atStartup, options),
      metrics: options.metrics.model(name, prepared.version),
      loadedAtStartup: origin.atStartup,
      envelope: options.settings.serviceEnvelope ?? prepared.manifest.model.envelope,
      workflowNode: origin.workflowNode,
      maxRequestBytes: options.settings.maxRequestSize,
      sequenceHeaders: sequenceHeadersOf(options.settings),
    },
    options.createPool,
  )
}

/**
 * What will be in force for a model; what it asks for in vain is told to `warn`.
 * @throws ServeError INVALID_MODEL when it cannot be served here, NO_DEVICE
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
  const configured = ownValue(ownValue(settings.models, name) ?? {}, prepared.version) ?? {}
  const { modelConfig, runtime } = prepared
  const resolved = resolveModelSettings(request, modelConfig, configured, settings, gpuCount, runtime)
  for (const warning of resolved.warnings) warn(`model-config of ${name}: ${warning}`)
  const { minWorkers, maxWorkers } = firstWorkers(request, resolved.settings, settings, gpuCount, atStartup)
  const fit = workersThatFit(resolved.settings, gpuCount, name)
  return {
    ...resolved.settings,
    minWorkers: Math.min(minWorkers, fit),
    maxWorkers: Math.min(maxWorkers, fit),
  }
}

/**
 * When neither call nor model says it: at start as many as GPUs, else CPUs; at register none. default_workers_per_model
 * stands for both.
 */
function firstWorkers(
  request: RegisterRequest,
  own: Pick<Model, 'minWorkers' | 'maxWorkers'>,
  settings: Settings,
  gpuCount: number,
  atStartup: boolean,
): Pick<Model, 'minWorkers' | 'maxWorkers'> {
  if (own.minWorkers > 0 || request.initialWorkers !== undefined) return own
  const devices = gpuCount > 0 ? gpuCount : availableParallelism()
  const count =
    settings.defaultWorkersPerModel > 0 ? settings.defaultWorkersPerModel : atStartup ? devices : 0
  return { minWorkers: count, maxWorkers: count }
}
