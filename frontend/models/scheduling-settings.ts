import { ServeError } from '../../common/errors.ts'
import { ConfigReader } from './config-reader.ts'
import type { ModelSettings, ParallelType } from './model-settings.ts'
import type { Settings } from '../config/settings.ts'
import type { ScalingSettings } from './autoscaler.ts'

type SchedulingSettings = Pick<
  ModelSettings,
  | 'asyncCommunication'
  | 'maxConcurrency'
  | 'tensorConcurrency'
  | 'batchesAhead'
  | 'continuousBatching'
  | 'useJobTicket'
  | 'sequenceBatching'
  | 'sequenceMaxIdleMSec'
  | 'sequenceTimeoutMSec'
  | 'maxNumSequence'
  | 'maxSequenceJobQueueSize'
>

/** Used when sequenceBatching is set without sequenceMaxIdleMSec; TorchServe answers no request then. */
const DEFAULT_IDLE_MS = 60_000
/** Concurrent batches of a worker whose handler is asynchronous. */
const ASYNC_SLOTS = 100
/** Short batches that may wait at a worker with one slot. Fewer leave it idle while it only echoes. */
const BATCHES_AHEAD = 64

/**
 * The scheduling mode of a model (docs/batching.md).
 * @param parallel rank group whose ranks choose their own steps; undefined: the frontend sends all ranks the
 *   same steps
 * @param asked concurrent batches per worker; overrides the file
 * @throws ServeError INVALID_MODEL for modes that exclude each other
 */
export function schedulingSettings(
  reader: ConfigReader,
  batchSize: number,
  parallel: { parallelType: ParallelType; parallelLevel: number } | undefined,
  asked?: number,
): SchedulingSettings {
  const asyncCommunication = reader.boolean('asyncCommunication')
  const continuousBatching = reader.boolean('continuousBatching')
  const own = reader.integer('maxConcurrency', 1)
  const sequences = sequenceSettings(reader)
  if (continuousBatching === true && parallel !== undefined) checkRanks(parallel)
  const byMode =
    continuousBatching === true
      ? slotsOfSteps(batchSize, sequences.sequenceBatching)
      : (own ?? (asyncCommunication === true ? ASYNC_SLOTS : 1))
  const maxConcurrency = asked ?? byMode
  const isSaid = [asked, own, asyncCommunication, continuousBatching].some((value) => value !== undefined)
  return {
    asyncCommunication: asyncCommunication ?? false,
    maxConcurrency,
    tensorConcurrency: isSaid ? maxConcurrency : ASYNC_SLOTS,
    batchesAhead: reader.integer('batchesAhead', 0) ?? BATCHES_AHEAD,
    continuousBatching: continuousBatching ?? false,
    useJobTicket: reader.boolean('useJobTicket') ?? false,
    ...sequences,
  }
}

/**
 * Requests that share the steps of one worker. Sequences double it, as in TorchServe, so that a running
 * request can still get input.
 */
function slotsOfSteps(batchSize: number, sequenceBatching: boolean): number {
  return sequenceBatching ? batchSize * 2 : batchSize
}

/** As in TorchServe, all limits are 0 without sequenceMaxIdleMSec. */
function sequenceSettings(reader: ConfigReader) {
  const sequenceBatching = reader.boolean('sequenceBatching') ?? false
  let idle = reader.integer('sequenceMaxIdleMSec', 0) ?? 0
  if (sequenceBatching && idle === 0) {
    idle = DEFAULT_IDLE_MS
    reader.warnings.push(`sequenceMaxIdleMSec must be above 0 with sequenceBatching; ${idle} is used`)
  }
  const limit = (key: string, least: 0 | 1): number => {
    const value = reader.integer(key, least) ?? least
    return idle === 0 ? 0 : value
  }
  return {
    sequenceBatching,
    sequenceMaxIdleMSec: idle,
    sequenceTimeoutMSec: limit('sequenceTimeoutMSec', 0),
    maxNumSequence: limit('maxNumSequence', 1),
    maxSequenceJobQueueSize: limit('maxSequenceJobQueueSize', 1),
  }
}

/** Each rank would form its own batches, and they would differ. With pp only rank 0 gets requests. */
function checkRanks({ parallelType, parallelLevel }: { parallelType: ParallelType; parallelLevel: number }) {
  if (parallelLevel <= 1 || parallelType === 'pp') return
  throw new ServeError(
    'INVALID_MODEL',
    `continuousBatching is not supported with parallelType ${parallelType} and several ranks; use parallelType pp`,
  )
}

/** Milliseconds that a request may wait for a slot. */
const TARGET_QUEUE_MS = 500
/** Seconds. */
const SCALE_UP_INTERVAL = 5
const SCALE_DOWN_AFTER = 60

/**
 * How the workers of a model follow its load: `scaling` of its model-config.yaml (`true`, `false`, or a map
 * of the keys that differ from the server's), else the server's keys.
 * @param reader of the whole file; gets the warnings
 * @param useJobTicket excludes scaling
 * @returns undefined: they do not
 */
export function scalingSettings(
  reader: ConfigReader,
  settings: Pick<Settings, 'scaling' | 'scaleToZeroAfter'>,
  useJobTicket: boolean,
): ScalingSettings | undefined {
  const asked = reader.isBoolean('scaling') ? reader.boolean('scaling') : undefined
  const section = asked === undefined ? reader.section('scaling') : undefined
  if (!(asked ?? (section !== undefined || settings.scaling))) return undefined
  if (useJobTicket) {
    // Said only to those who asked: the server's key is for all models.
    if (asked ?? section) reader.inert('scaling', 'with useJobTicket no request waits')
    return undefined
  }
  const file = section ?? new ConfigReader({})
  const milliseconds = (key: string, otherwise: number): number =>
    (file.number(key, { above: 0 }) ?? otherwise) * 1000
  const found: ScalingSettings = {
    targetQueueTime: file.number('targetQueueTime', { above: 0 }) ?? TARGET_QUEUE_MS,
    scaleUpInterval: milliseconds('scaleUpInterval', SCALE_UP_INTERVAL),
    scaleDownAfter: milliseconds('scaleDownAfter', SCALE_DOWN_AFTER),
    scaleToZeroAfter: milliseconds('scaleToZeroAfter', settings.scaleToZeroAfter),
  }
  file.misspelt()
  reader.warnings.push(...file.warnings.map((warning) => `scaling: ${warning}`))
  return found
}
