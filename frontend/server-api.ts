import type { OpenRequest, ShownSetting } from '../common/server-events.ts'
import type { Logger } from 'pino'
import type { Settings } from './config/settings.ts'
import type { SnapshotContent } from './config/model-snapshot.ts'
import type { SnapshotKind } from './config/snapshot-store.ts'
import type { RestDialect } from './dialects/rest-dialect.ts'
import type { ListedMethod } from '../common/handler-methods.ts'
import type { GrpcDialect } from './dialects/grpc-dialect.ts'
import type { ModelDescription } from './models/operations.ts'
import type { FailedModel, ReplaceableModels } from './models/repository.ts'
import type { Logs } from './observe/logs/log-files.ts'
import type { LogTail } from './observe/logs/logger.ts'

/** Starts a server; implemented by `startServer` in server.ts. */
export type StartServer = (settings: Settings, options: StartOptions) => Promise<RunningServer>

export interface StartOptions {
  log: Logger
  /** Where access log, audit log and metrics go; absent: they are not written. */
  logFiles?: Logs
  /** Where `log` also goes: its lost lines are a metric. */
  console?: { readonly lost: number }
  /** The keys and where their values came from, for GET /configuration; absent: it shows none. */
  configuration?: () => readonly ShownSetting[]
  /** The last lines of `log`, for those who watch; absent: they see none. */
  logTail?: LogTail
  /** Whether the start fails when a model does not load. Default: it does not wait for the workers. */
  waitForModels?: boolean
  /** Destination of snapshots; absent: none are written. */
  snapshots?: { write(kind: SnapshotKind, content: SnapshotContent): Promise<void> }
  /** Whether clients read what a handler threw, and where. Default: no, the log has it. */
  tellsThrown?: boolean
  /** The flag that chose the port of REST, for messages. Default: the configuration key. */
  portFlag?: string | undefined
  /** Where `model_snapshot` was read, and how not to: ends messages about models of it that cannot load. */
  snapshotHint?: string
  /** REST dialects, in the order in which a request is offered to them. Default: all of dialects/index.ts. */
  restDialects?: readonly RestDialect[]
  /** gRPC services. Default: all of dialects/index.ts. */
  grpcDialects?: readonly GrpcDialect[]
  /** Aborts when the process must stop while it still starts: undo everything and reject. */
  signal?: AbortSignal
}

export interface RunningServer {
  /** Listeners in the order to print: `{ name: 'Inference REST API', address: 'http://127.0.0.1:8080' }`. */
  readonly listening: readonly { readonly name: string; readonly address: string }[]
  /** The page of the console; undefined: it is off, or on a Unix socket. */
  readonly consoleUrl?: string | undefined
  /** Warnings about this start, one line each. */
  readonly warnings: readonly string[]
  /** Number of requests that have not ended, in models and workflows. */
  readonly openRequests: number
  /** What it serves at this moment. */
  readonly status: () => Promise<ServerStatus>
  /** The models, for a command that serves in its own process. */
  readonly models: ReplaceableModels
  /** Refuses new requests, gives running ones the drain timeout, then ends everything. Never rejects. */
  close(): Promise<void>
  /**
   * Kills worker processes and removes files, synchronously: the process may exit then. Resolves when the log
   * has what the workers printed, at the latest after three seconds. Never rejects.
   */
  kill(): Promise<void>
}

/** What a server does, for `torchserve-ts status`. */
export interface ServerStatus {
  readonly openRequests: number
  /** The oldest open requests, 200 at most. */
  readonly requests: readonly OpenRequest[]
  /** Every version of every model. */
  readonly models: readonly ServedModel[]
  /** Models of the start that could not be loaded. */
  readonly failed: readonly FailedModel[]
}

/** A version as describe shows it. */
export interface ServedModel extends ModelDescription {
  /** Methods of its handler besides `handle`; absent until a worker has loaded it. */
  readonly methods?: readonly ListedMethod[]
}
