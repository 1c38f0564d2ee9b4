import type { Logger } from 'pino'
import type { ModelSnapshot, Settings } from './config/settings.ts'
import type { SnapshotKind } from './config/snapshot-store.ts'
import type { GrpcDialect } from './dialects/grpc-dialect.ts'
import type { LogFiles } from './observe/logs/log-files.ts'

/** How the command line starts a server; server.ts provides it as `startServer`. */
export type StartServer = (settings: Settings, options: StartOptions) => Promise<RunningServer>

export interface StartOptions {
  log: Logger
  /** Where access and metric lines go; absent: nowhere. */
  logFiles?: LogFiles
  /**
   * What a model of `loadModels` that cannot be registered does: fail the start, or be logged and skipped.
   * Default: `fail` for a list, `skip` for `all`.
   */
  startupModels?: 'fail' | 'skip'
  /** Where snapshots go; absent: none are written. */
  snapshots?: { write(kind: SnapshotKind, models: ModelSnapshot['models']): Promise<void> }
  /** What gRPC clients can speak; absent: every service of dialects/index.ts. */
  grpcDialects?: readonly GrpcDialect[]
  /** Aborts when the process is told to stop while it still starts: undo what was done and reject. */
  signal?: AbortSignal
}

export interface RunningServer {
  /** What listens where, in the order to print: `{ name: 'Inference REST API', address: 'http://127.0.0.1:8080' }`. */
  readonly listening: readonly { readonly name: string; readonly address: string }[]
  /** What the user should know about this start; one line each. */
  readonly warnings: readonly string[]
  /** Refuses new work, lets running requests finish within the drain timeout, then ends everything. Never rejects. */
  close(): Promise<void>
  /** Ends worker processes and removes files at once, synchronously: the process exits right after it. */
  kill(): void
}
