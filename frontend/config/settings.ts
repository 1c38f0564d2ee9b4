import type { KEYS } from './keys.ts'
import type { KeySpec } from './key-spec.ts'

/**
 * The whole configuration of a running server, from config.properties, environment and flags. Validated and
 * frozen. The tables of keys have each setting with its unit, default and meaning.
 */
export type Settings = {
  readonly [K in keyof typeof KEYS]: (typeof KEYS)[K] extends KeySpec<infer T> ? T : never
}

/** Log files, by name without `.log` (docs/metrics-and-logs.md). */
export const LOG_FILES = [
  'access_log',
  'ts_log',
  'model_log',
  'ts_metrics',
  'model_metrics',
  'audit_log',
] as const
export type LogFileName = (typeof LOG_FILES)[number]

export interface ModelToLoad {
  /** Name to register the model under; absent: the archive's. */
  readonly name?: string
  /** Archive, folder or URL as the user wrote it, without a pin. */
  readonly location: string
  /** Ours: SHA-256 that the archive must have, in lowercase hex. */
  readonly sha256?: string
  /** Ours: keys of model-config.yaml, over those of the model. Set by `torchserve-ts serve`. */
  readonly config?: Readonly<Record<string, unknown>>
}
