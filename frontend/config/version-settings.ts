import * as z from 'zod/mini'
import type { Settings } from './settings.ts'
import type { ValueType } from './value-types.ts'

const count = z.int().check(z.minimum(0), z.maximum(10_000))
const positive = z.int().check(z.minimum(1), z.maximum(2_147_483_647))
const seconds = z.number().check(z.minimum(0.001), z.maximum(2_147_483))

/** Fields that TorchServe writes there and that mean nothing here yet are dropped without a word. */
const versionSettings = z
  .object({
    minWorkers: z.optional(count),
    maxWorkers: z.optional(count),
    batchSize: z.optional(positive),
    maxBatchDelay: z.optional(z.int().check(z.minimum(0), z.maximum(2_147_483_647))),
    responseTimeout: z.optional(seconds),
    startupTimeout: z.optional(seconds),
  })
  .check(
    z.refine(({ minWorkers, maxWorkers }) => (minWorkers ?? 0) <= (maxWorkers ?? Infinity), {
      error: 'minWorkers is more than maxWorkers',
    }),
  )

/** The `models` key: JSON, `{name: {version: {minWorkers, ...}}}`. */
export const MODELS_JSON: ValueType<Settings['models']> = {
  label: 'JSON',
  expected: 'JSON of the form {"name": {"version": {"minWorkers": 1}}}',
  schema: z.pipe(
    z.pipe(
      z.string(),
      z.transform((text: string, context): unknown => {
        try {
          return JSON.parse(text)
        } catch (error) {
          context.issues.push({ code: 'custom', message: (error as Error).message, input: text })
          return z.NEVER
        }
      }),
    ),
    z.record(z.string(), z.record(z.string(), versionSettings)),
  ),
}
