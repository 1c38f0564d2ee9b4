import type { LoadMessage } from '../protocol/messages.ts'
import type { ContextProperties, SequenceHeaders } from './handler.ts'
import { MetricCache } from './metrics.ts'
import type { Outlet } from './outlet.ts'
import type { StreamLimits } from './response-stream.ts'

/** The rank of this process within its worker. */
export interface Rank {
  readonly rank: number
  readonly localRank: number
  readonly worldSize: number
}

/** The model that this worker serves, as contexts expose it. */
export interface LoadedModel {
  readonly name: string
  readonly version: string
  readonly manifest: Readonly<Record<string, unknown>>
  readonly config: Readonly<Record<string, unknown>>
  readonly properties: ContextProperties
  readonly limits: StreamLimits
  readonly decodeInput: boolean
  readonly continuousBatching: boolean
  readonly sequenceHeaders: SequenceHeaders
  readonly sequenceBatching: boolean
  /** The handler's store between calls. */
  readonly cache: Map<string, unknown>
  readonly metrics: MetricCache
}

const SEQUENCE_HEADERS: SequenceHeaders = {
  id: 'ts_request_sequence_id',
  start: 'ts_request_sequence_start',
  end: 'ts_request_sequence_end',
}

export function modelFrom(load: LoadMessage, rank: Rank, outlet: Outlet): LoadedModel {
  return {
    name: load.modelName,
    version: load.modelVersion,
    manifest: load.manifest,
    config: load.modelConfig,
    properties: Object.freeze({
      modelDir: load.modelDir,
      batchSize: load.batchSize,
      gpuId: load.gpuId,
      limitMaxImagePixels: load.limitMaxImagePixels ?? true,
      device: load.gpuId < 0 ? 'cpu' : `cuda:${rank.localRank}`,
      ...rank,
      serverName: 'torchserve-ts',
      serverVersion: load.serverVersion,
    }),
    limits: { maxResponseBytes: load.maxResponseBytes, maxUnsentBytes: load.maxUnsentBytes },
    decodeInput: load.decodeInput,
    continuousBatching: load.continuousBatching ?? false,
    sequenceHeaders: load.sequenceHeaders ?? SEQUENCE_HEADERS,
    sequenceBatching: load.modelConfig['sequenceBatching'] === true,
    cache: new Map(),
    metrics: new MetricCache(outlet, load.metrics),
  }
}
