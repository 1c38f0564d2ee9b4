import type { GrpcCall } from '../grpc-calls.ts'
import type { Target } from '../targets/target.ts'

/**
 * What every peer serves: an echo; a stream of a hundred items; a stream that says how long the handler ran;
 * and the same, set so that many requests wait side by side in one worker.
 */
export type Model = 'echo' | 'hundred' | 'timed' | 'idle'

/** A handler that answers with the size of its batch, for peers with TorchServe's batches. */
export const BATCH_SIZES = [4, 8, 32] as const
export type BatchModel = `batch${(typeof BATCH_SIZES)[number]}`

/** The model-config.yaml of one. */
export function batchConfig(model: BatchModel): string {
  return `batchSize: ${model.slice('batch'.length)}\nmaxBatchDelay: 20\n`
}

export function isBatchModel(model: string): model is BatchModel {
  return model.startsWith('batch')
}

/** One REST request, in the form that the peer wants. */
export interface RestCall {
  path: string
  headers: Readonly<Record<string, string>>
  body: Buffer
}

/** A server to compare with: what it is, how it is installed, started and asked. */
export interface Peer {
  /** On the command line. */
  name: string
  title: string
  /** Packages with their versions. */
  packages: readonly string[]
  /** Every setting, each with the page that recommends it. */
  settings: readonly string[]
  /** Path that answers 200 when the server is ready; after it, every model must answer. */
  health: string
  /** Number of workers that it takes or recommends on this machine. */
  recommendedWorkers: number
  /** @returns all that is installed, one package a line. @throws Error with the reason why it cannot be */
  install(): Promise<readonly string[]>
  start(models: readonly Model[], workers: number): Promise<Target>
  /** Starts it with one worker for each of these. Absent: it has no such batches. */
  startBatches?(models: readonly BatchModel[]): Promise<Target>
  /** @param text the echo's body, or JSON of a {@link TimedRequest} */
  rest(model: Model, text: string): RestCall
  /** Absent: it has no gRPC. */
  grpc?(model: Model, text: string): GrpcCall
}

/** `n` items, `gap` milliseconds apart. */
export interface TimedRequest {
  n: number
  gap: number
}

export const timedText = (request: TimedRequest): string => JSON.stringify(request)
