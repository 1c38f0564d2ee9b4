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
  /** Milliseconds after which one with fewer goes, once no other is under way. */
  readonly delayMs: number
  /** Spans that the thread has not taken or, if they are encoded, not exported: further ones are dropped. */
  readonly maxWaiting: number
}

/** For spans that go as rows: the SDK's processors form the batches that OTEL_BSP_* ask for. */
export const ROWS: Batches = { size: 256, delayMs: 100, maxWaiting: 8_192 }

/**
 * An export takes about a millisecond, with few spans or with many, so by default one has four times as many
 * as the SDK puts into it.
 */
const ENCODED: Batches = { size: 2_048, delayMs: 5_000, maxWaiting: 8_192 }
/** The most that are copied in one turn of the event loop. */
const MAX_SIZE = 8_192
/** Of a timer. */
const MAX_DELAY_MS = 2 ** 31 - 1

/** For encoded spans, which are exported as they go: as OTEL_BSP_* say, or our own defaults. */
export function encodedBatches(env: Environment): Batches {
  const { maxQueueSize, scheduledDelayMillis, maxExportBatchSize } = batchSettings(env)
  const maxWaiting = maxQueueSize ?? ENCODED.maxWaiting
  return {
    // While one batch is exported, the next one has room.
    size: Math.min(maxExportBatchSize ?? ENCODED.size, maxWaiting / 2, MAX_SIZE),
    delayMs: Math.min(scheduledDelayMillis ?? ENCODED.delayMs, MAX_DELAY_MS),
    maxWaiting,
  }
}
