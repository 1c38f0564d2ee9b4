import type { ListedMethod } from './handler-methods.ts'

/**
 * The events of `GET /events` on the management port, a stream of Server-Sent Events for whoever watches a
 * server: the console, and programs of operators. The name of each event is a topic; its data is one JSON
 * object of the type below. `?topics=overview,requests,log` chooses; default: all.
 * Times of day are ISO 8601 in UTC, ages are milliseconds.
 */
export interface ServerEvents {
  /** At the start, and once a second: what the server and its models do. */
  overview: OverviewEvent
  /** At the start, and once a second: the open requests. */
  requests: RequestsEvent
  /** The last lines at the start, then new lines as they are written, at most four times a second. */
  log: LogEvent
}

export type EventTopic = keyof ServerEvents

export interface OverviewEvent {
  at: string
  server: ServerOverview
  /** The versions that the viewer's key may see, sorted by name, then version. */
  models: ModelOverview[]
  /** Models of the start that could not be loaded. None of them is in `models`. */
  failed: FailedOverview[]
  /** Archives that are being downloaded, unpacked, or loaded. */
  loading: LoadingModel[]
}

export interface ServerOverview {
  version: string
  node: string
  pid: number
  startedAt: string
  /** It stops: new requests are refused, running ones end. */
  draining: boolean
  /** Resident memory of the frontend. */
  memoryBytes: number
  /** User and system time of the frontend since its start, in seconds. */
  cpuSeconds: number
  openRequests: number
  listening: { name: string; address: string }[]
}

/** Why a model failed, in one line, and the id of the line in the log. */
export interface FailureOverview {
  id: string
  at: string
  reason: string
}

export interface FailedOverview {
  modelName: string
  /** Absent: unknown. */
  modelVersion?: string
  /** Its archive, without passwords and signatures. */
  url: string
  failure: FailureOverview
}

export interface ModelOverview {
  modelName: string
  modelVersion: string
  isDefault: boolean
  /** `waking`: it has no workers now, and the first request starts one. `stopped`: it wants no workers. */
  state: 'ready' | 'loading' | 'failed' | 'waking' | 'stopped'
  failure?: FailureOverview
  runtime: string
  minWorkers: number
  maxWorkers: number
  workers: WorkerOverview[]
  /** Requests that wait, and how many more may. */
  queue: { waiting: number; room: number }
  /** Open requests, and those of them whose stream has begun. */
  open: number
  streams: number
  /** Its share of the requests that name no version, from 0 to 1; absent: no weights are set. */
  trafficShare?: number
  /** Methods of its handler; absent: no worker has loaded it yet. */
  methods?: readonly ListedMethod[]
  /** Requests that failed or timed out since the last one that finished. */
  failedInARow: number
  /** Requests that failed or timed out since the version was registered, by error code. */
  errors: RequestErrors[]
  /** Since the version was registered. */
  counts: { unary: OutcomeCounts; stream: OutcomeCounts; items: number; bytes: number }
  /** Since the version was registered, in seconds. */
  times: { firstResponse: Histogram; gaps: Histogram; queue: Histogram; whole: Histogram }
}

/** Requests that failed with one error code. */
export interface RequestErrors {
  code: string
  count: number
  /** Of the last of them: when it ended, its id, and the first line of the reason, at most 300 characters. */
  at: string
  requestId: string
  reason: string
}

export interface WorkerOverview {
  id: string
  /** Absent: its process does not run. With ranks: the process of rank 0. */
  pid?: number
  state: string
  memoryBytes?: number
  inFlight: number
  /** Unexpected ends since the version was registered. */
  restarts: number
  /** How its last process ended, and the last lines it wrote. */
  lastExit?: { at: string; cause: string; lines: string[] }
}

/** Ended requests. */
export interface OutcomeCounts {
  finished: number
  failed: number
  cancelled: number
  timed_out: number
  client_stalled: number
}

/** `counts[i]` values are at most `bounds[i]` and above the bound before; the last count is above all. */
export interface Histogram {
  bounds: readonly number[]
  counts: readonly number[]
  sum: number
}

export interface LoadingModel {
  /** The name that was asked for; absent: the archive decides. */
  modelName?: string
  /** Without passwords and signatures. */
  url: string
  phase: 'downloading' | 'unpacking' | 'starting workers'
  receivedBytes?: number
  totalBytes?: number
  ageMs: number
}

export interface RequestsEvent {
  at: string
  /** All open requests that the viewer's key may see. */
  total: number
  /** The oldest of them, at most `?requests=N` (default 200, at most 5,000). */
  requests: OpenRequest[]
}

export interface OpenRequest {
  /** The `x-request-id` of its response; `DELETE /requests/{id}` cancels it. */
  id: string
  modelName: string
  /** Absent: it is for a workflow, whose nodes have requests of their own. */
  modelVersion?: string
  /**
   * `torchserve`, `open-inference`, `openai`, with `-grpc` for gRPC; `workflow` for a node of a workflow;
   * `server` when the server itself asks.
   */
  api: string
  /** The client's address without its port; `unix socket`, or `server`. */
  client: string
  /** Name of the API key, the JWT's subject, or the certificate; absent: TorchServe's keys, or no token. */
  key?: string
  ageMs: number
  /** Whether a stream has begun, and what it has sent. */
  streaming: boolean
  items: number
  bytes: number
  /** From arrival to the first response; absent: there was none. */
  firstResponseMs?: number
  /** Between its last two items; absent: there were fewer. */
  lastGapMs?: number
  /** What it waits for now. `client`: the client does not read, so the handler is held back. */
  waitsFor: 'worker' | 'handler' | 'client'
}

export interface LogEvent {
  lines: LogEntry[]
  /** Lines that were left out, because more were written than one event holds. */
  dropped: number
}

export interface LogEntry {
  at: string
  level: 'debug' | 'info' | 'warn' | 'error'
  /** `MODEL_LOG`: a handler or its process. */
  logger: string
  /** Worker and stream of a handler's line: `W-9000-echo_1.0-stdout`. */
  thread?: string
  message: string
}

/** A configuration key as operators see it, without secrets. */
export interface ShownSetting {
  readonly name: string
  /** One line; undefined: it has no value. */
  readonly value: string | undefined
  /** Where the value came from: `config.properties:3` with its path, a flag, a variable, or `default`. */
  readonly source: string
  /** Undefined: without a value from elsewhere it has none. */
  readonly fallback: string | undefined
  readonly meaning: string
}
