import { ownValue } from '../../../common/own-keys.ts'
import type { Environment } from './start.ts'
import { milliseconds, positive } from './variables.ts'

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
  const text = (name: string): string | undefined => ownValue(env, `OTEL_BSP_${name}`)
  return {
    maxQueueSize: positive(text('MAX_QUEUE_SIZE')),
    scheduledDelayMillis: milliseconds(text('SCHEDULE_DELAY')),
    exportTimeoutMillis: milliseconds(text('EXPORT_TIMEOUT')),
    maxExportBatchSize: positive(text('MAX_EXPORT_BATCH_SIZE')),
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

/** Of encoded spans. */
export interface EncodedBatches extends Batches {
  /** Milliseconds for an export. */
  readonly timeoutMs: number
}

/** For spans that go as rows: the SDK's processors form the batches that OTEL_BSP_* ask for. */
export const ROWS: Batches = { size: 256, delayMs: 100, maxWaiting: 8_192 }

/** Spans of one export, at most. */
const MAX_SIZE = 8_192
/**
 * An export takes milliseconds, with few spans or with many, so by default one has sixteen times as many as
 * the SDK puts into it.
 */
const ENCODED: EncodedBatches = { size: MAX_SIZE, delayMs: 5_000, maxWaiting: 32_768, timeoutMs: 30_000 }
/** A batch with more goes, however few spans it has: collectors limit requests. */
export const MAX_BYTES = 1_000_000

/** For encoded spans, which are exported as they go: as OTEL_BSP_* say, or our own defaults. */
export function encodedBatches(env: Environment): EncodedBatches {
  const { maxQueueSize, scheduledDelayMillis, exportTimeoutMillis, maxExportBatchSize } = batchSettings(env)
  const maxWaiting = maxQueueSize ?? ENCODED.maxWaiting
  return {
    // While one batch is exported, the next one has room.
    size: Math.min(maxExportBatchSize ?? ENCODED.size, Math.max(1, Math.floor(maxWaiting / 2)), MAX_SIZE),
    delayMs: scheduledDelayMillis ?? ENCODED.delayMs,
    maxWaiting,
    timeoutMs: exportTimeoutMillis ?? ENCODED.timeoutMs,
  }
}
