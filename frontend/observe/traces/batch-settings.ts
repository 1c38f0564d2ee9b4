import { ownValue } from '../../../common/own-keys.ts'
import type { Environment } from './start.ts'
import { positive } from './variables.ts'

/** How spans wait for their export; spans, milliseconds. Undefined: the SDK's default. */
export interface BatchSettings {
  readonly maxQueueSize: number | undefined
  readonly scheduledDelayMillis: number | undefined
  readonly exportTimeoutMillis: number | undefined
  readonly maxExportBatchSize: number | undefined
}

/**
 * What OTEL_BSP_* say.
 * https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/#batch-span-processor
 */
export function batchSettings(env: Environment): BatchSettings {
  const of = (name: string): number | undefined => positive(ownValue(env, `OTEL_BSP_${name}`))
  return {
    maxQueueSize: of('MAX_QUEUE_SIZE'),
    scheduledDelayMillis: of('SCHEDULE_DELAY'),
    exportTimeoutMillis: of('EXPORT_TIMEOUT'),
    maxExportBatchSize: of('MAX_EXPORT_BATCH_SIZE'),
  }
}

/** How spans go to the thread that exports them. */
export interface Batches {
  /** Spans. */
  readonly size: number
  /** Milliseconds after which one with fewer goes. */
  readonly delayMs: number
  /** Spans that the thread has not taken or, if they are encoded, not exported: further ones are dropped. */
  readonly maxWaiting: number
}

/** Those that the SDK's processors put together again, as OTEL_BSP_* say. */
export const ROWS: Batches = { size: 256, delayMs: 100, maxWaiting: 8_192 }

/**
 * A request takes about a millisecond whatever it has, so by default one has four times as many spans as the
 * SDK puts into it.
 */
const ENCODED: Batches = { size: 2_048, delayMs: 5_000, maxWaiting: 8_192 }

/** Those that are exported as they are: as OTEL_BSP_* say, or our own defaults. */
export function encodedBatches(env: Environment): Batches {
  const { maxQueueSize, scheduledDelayMillis, maxExportBatchSize } = batchSettings(env)
  const maxWaiting = maxQueueSize ?? ENCODED.maxWaiting
  return {
    size: Math.min(maxExportBatchSize ?? ENCODED.size, maxWaiting),
    delayMs: scheduledDelayMillis ?? ENCODED.delayMs,
    maxWaiting,
  }
}
