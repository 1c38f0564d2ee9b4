import { createRequire } from 'node:module'
import type * as Zod from 'zod/mini'
import type { ValueType } from './value-types.ts'
import type { ModelToLoad } from './settings.ts'
import { trafficShape, type TrafficSettings } from './traffic-settings.ts'
import { sha256, type VersionSettings } from './version-settings.ts'

/** The `model_snapshot` key: loaded models by name and version (docs/snapshots.md). */
export interface ModelSnapshot {
  /** File name of the snapshot. */
  readonly name: string
  readonly modelCount: number
  /** Milliseconds since the epoch. */
  readonly created: number
  readonly models: Readonly<Record<string, Readonly<Record<string, VersionSnapshot>>>>
  /** Ours: weights between the versions of a model, by name. TorchServe does not read them. */
  readonly traffic?: Readonly<Record<string, TrafficSettings>>
  /** Ours: models that could not be loaded, as configured. TorchServe does not read them. */
  readonly unloaded?: readonly ModelToLoad[]
}

/** What the models give to a snapshot. */
export type SnapshotContent = Pick<ModelSnapshot, 'models' | 'traffic' | 'unloaded'>

export interface VersionSnapshot extends VersionSettings {
  readonly defaultVersion: boolean
  /** File or folder in the model store. */
  readonly marName: string
  readonly minWorkers: number
  readonly maxWorkers: number
  /** Absent: the archive's. */
  readonly runtimeType?: string
  readonly parallelLevel?: number
  /** Ours: URL or path of the model when it is not `marName` in the model store. */
  readonly modelUrl?: string
  /** Ours: handler given in the register call. */
  readonly handler?: string
  /** Ours: SHA-256 of the archive that was loaded, pinned or not. */
  readonly archiveSha256?: string
}

/** The `model_snapshot` key: the JSON in snapshots of this server and of TorchServe (docs/snapshots.md). */
export const MODEL_SNAPSHOT: ValueType<ModelSnapshot | undefined> = {
  label: 'JSON',
  expected: 'JSON of the form {"models": {"name": {"version": {"marName": "name.mar"}}}}',
  parse: (text, explain) => {
    try {
      const result = schema().safeParse(JSON.parse(text))
      if (result.success) return result.data
      const { path, message } = result.error.issues[0]!
      explain(`${path.map(String).join('/')}: ${message}`)
    } catch (error) {
      explain((error as Error).message)
    }
    return undefined
  },
}

/** Loads zod on first use: it costs start time, and few servers start from a snapshot. */
function schema() {
  const z = createRequire(import.meta.url)('zod/mini') as typeof Zod
  const count = z.int().check(z.minimum(0), z.maximum(2_147_483_647))
  const seconds = z.optional(z.number().check(z.gt(0)))
  const version = z.object({
    defaultVersion: z._default(z.boolean(), false),
    marName: z.string().check(z.minLength(1)),
    minWorkers: z._default(count, 0),
    maxWorkers: z._default(count, 0),
    batchSize: z.optional(count.check(z.minimum(1))),
    maxBatchDelay: z.optional(count),
    responseTimeout: seconds,
    startupTimeout: seconds,
    runtimeType: z.optional(z.string()),
    parallelLevel: z.optional(count),
    modelUrl: z.optional(z.string()),
    handler: z.optional(z.string()),
    sha256: sha256(z),
    archiveSha256: z.optional(z.string()),
  })
  return z.object({
    name: z._default(z.string(), ''),
    modelCount: z._default(z.number(), 0),
    created: z._default(z.number(), 0),
    models: z.record(z.string(), z.record(z.string(), version)),
    traffic: z.optional(z.record(z.string(), z.object(trafficShape(z)))),
    unloaded: z.optional(
      z.array(z.object({ name: z.optional(z.string()), location: z.string(), sha256: sha256(z) })),
    ),
  })
}
