import { removedSection } from '../config/removed-keys.ts'
import type { Settings } from '../config/settings.ts'
import type { VersionSettings } from '../config/version-settings.ts'
import type { JobTimeouts } from '../jobs/time-limit.ts'
import type { Runtime } from '../../model-archiver/handler-entry.ts'
import { ConfigReader } from './config-reader.ts'
import { warnOfTensors } from './declared-tensors.ts'
import { deviceSettings, parallelism } from './device-settings.ts'
import { scalingSettings, schedulingSettings } from './scheduling-settings.ts'
import type { RegisterRequest } from './operations.ts'
import type { ModelSettings } from './model-settings.ts'

/** Seconds of a time limit that nothing sets. */
const DEFAULT_LIMIT = 120

/**
 * Merges the register call, model-config.yaml, the `models` key and the defaults, in this order of
 * precedence. In TorchServe the yaml file overrides the call, even for keys that it does not contain.
 * @param limit seconds of the time limits that none of them sets
 * @throws ServeError INVALID_MODEL for a section that confined workers
 */
export function resolveModelSettings(
  request: Partial<RegisterRequest>,
  yaml: Record<string, unknown>,
  configured: VersionSettings,
  settings: Settings,
  gpuCount = 0,
  runtime: Runtime = 'node',
  limit = DEFAULT_LIMIT,
): { settings: ModelSettings; warnings: string[] } {
  const reader = new ConfigReader(yaml)
  const responseTimeout =
    request.responseTimeout ??
    reader.number('responseTimeout', { above: 0 }) ??
    configured.responseTimeout ??
    settings.defaultResponseTimeout ??
    limit
  const clientTimeoutInMills = reader.integer('clientTimeoutInMills', 0) ?? 0
  const node = runtime === 'node'
  const parallel = parallelism(reader, node)
  const batchSize = request.batchSize ?? reader.raised('batchSize', 1) ?? configured.batchSize ?? 1
  const scheduling = schedulingSettings(
    reader,
    batchSize,
    node ? parallel : undefined,
    request.maxConcurrency,
  )
  const scaling = scalingSettings(reader, settings, scheduling.useJobTicket)
  const resolved: ModelSettings = {
    ...(scaling === undefined ? workers(request, reader, configured) : bounds(request, reader, configured)),
    batchSize,
    maxBatchDelay:
      request.maxBatchDelay ?? reader.integer('maxBatchDelay', 0) ?? configured.maxBatchDelay ?? 100,
    responseTimeout,
    startupTimeout:
      request.startupTimeout ??
      reader.number('startupTimeout', { above: 0 }) ??
      configured.startupTimeout ??
      settings.defaultStartupTimeout,
    maxRetryTimeoutInSec: reader.integer('maxRetryTimeoutInSec', 0) ?? 300,
    clientTimeoutInMills,
    jobQueueSize: reader.integer('jobQueueSize', 1) ?? settings.jobQueueSize,
    ...parallel,
    ...deviceSettings(reader, gpuCount),
    ...scheduling,
    scaling,
    useVenv: !node && (reader.boolean('useVenv') ?? false),
    timeouts: timeouts(reader, responseTimeout, limit, clientTimeoutInMills, settings),
    idempotent: reader.boolean('idempotent') ?? false,
    cancelGraceMs:
      reader.integer('cancelGraceMs', 0) ?? (node ? settings.cancelGraceMs : settings.pythonCancelGraceMs),
    streamWindowSize: reader.integer('streamWindowSize', 1) ?? settings.streamWindowSize,
    workerWrapper: configured.workerWrapper ?? settings.workerWrapper,
    credentialHeaders: new Set(settings.handlerCredentials),
  }
  const removed = removedSection(reader.any('sandbox'))
  if (removed !== undefined) reader.warnings.push(removed)
  warnOfTensors(reader)
  if (node) reader.inert('useVenv', 'its handler is not Python')
  reader.misspelt()
  return { settings: resolved, warnings: reader.warnings }
}

function workers(
  request: Partial<RegisterRequest>,
  reader: ConfigReader,
  configured: VersionSettings,
): { minWorkers: number; maxWorkers: number } {
  if (request.initialWorkers !== undefined) {
    const { initialWorkers: count, maxWorkers = count } = request
    return { minWorkers: count, maxWorkers }
  }
  const min = reader.raised('minWorkers', 1) ?? configured.minWorkers ?? 0
  const max = reader.integer('maxWorkers', 0) ?? configured.maxWorkers ?? min
  if (max >= min) return { minWorkers: min, maxWorkers: max }
  reader.warnings.push(`maxWorkers must be at least minWorkers, found ${max}; both are ${min}`)
  return { minWorkers: min, maxWorkers: min }
}

/**
 * The bounds of a model that scales. A call sets the lower one, and may raise the upper one. 0 for
 * maxWorkers: as many as the server gives a model.
 */
function bounds(
  request: Partial<RegisterRequest>,
  reader: ConfigReader,
  configured: VersionSettings,
): { minWorkers: number; maxWorkers: number } {
  const asked = request.initialWorkers
  const min = asked ?? reader.raised('minWorkers', 0) ?? configured.minWorkers
  const max = reader.integer('maxWorkers', 0) ?? configured.maxWorkers ?? min ?? 0
  if (asked !== undefined)
    return { minWorkers: asked, maxWorkers: request.maxWorkers ?? Math.max(asked, max) }
  const minWorkers = min ?? 1
  if (max >= minWorkers || max === 0) return { minWorkers, maxWorkers: max }
  reader.warnings.push(`maxWorkers must be at least minWorkers, found ${max}; both are ${minWorkers}`)
  return { minWorkers, maxWorkers: minWorkers }
}

/**
 * Time limits of jobs in milliseconds; the file has seconds. responseTimeout is the default of both
 * firstResponseTimeout and gapTimeout.
 */
function timeouts(
  reader: ConfigReader,
  responseTimeout: number,
  limit: number,
  clientTimeout: number,
  settings: Settings,
): JobTimeouts {
  const seconds = (key: string, otherwise: number) => (reader.number(key, { from: 0 }) ?? otherwise) * 1000
  return {
    queue: seconds('queueTimeout', settings.defaultQueueTimeout ?? limit),
    firstResponse: seconds('firstResponseTimeout', settings.defaultFirstResponseTimeout ?? responseTimeout),
    gap: seconds('gapTimeout', settings.defaultGapTimeout ?? responseTimeout),
    ...(clientTimeout > 0
      ? { total: clientTimeout, totalKey: 'clientTimeoutInMills' }
      : { total: seconds('requestTimeout', settings.defaultRequestTimeout) }),
  }
}
