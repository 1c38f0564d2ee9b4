import type { ServeError } from '../../common/errors.ts'
import type { Job } from '../jobs/job.ts'
import type { ModelSettings } from '../models/model-settings.ts'
import type { PatienceOptions } from './patience.ts'
import type { WorkerGroup } from './worker-group.ts'

/** What the requests of a worker need of it. */
export interface RequestsOptions extends PatienceOptions {
  window: number
  /** Headers with credentials that the model asks for, in lower case. */
  credentialHeaders: ReadonlySet<string>
  /** Whether the worker waits for credit. One that does, and sends without, is cut off. */
  heedsCredit: boolean
  /** Batches that may wait behind the running one; 0 if the worker cannot give them back. */
  batchesAhead: number
  /** Number of ranks that get every request and must finish it. */
  ranks: number
  /**
   * Requests of this worker share the handler's steps or its event loop, so a cancelled one may have to wait
   * for others.
   */
  shared: boolean
  group: Pick<WorkerGroup, 'send' | 'sendToFirst'>
  /** A batch has finished, so its slot is free. */
  onFree(): void
  /** The handler failed a request that was not cancelled. */
  onFailure(job: Job, error: ServeError): void
  /** What its client gets of an error that the worker sent. */
  forClient(error: ServeError): ServeError
  /** A time limit ended a job that the handler has. */
  onTimeout(job: Job): void
  /** The worker violated the protocol; nothing more of it can be trusted. */
  onBreach(why: string): void
  /** A response was dropped because its request had ended. */
  onDiscarded(): void
}

/** What a worker does for its requests. */
interface RequestsOwner extends Pick<
  RequestsOptions,
  'onFree' | 'onFailure' | 'forClient' | 'onTimeout' | 'onDiscarded'
> {
  /** Its processes cannot go on. */
  kill(why: string): void
}

/** How the requests of one start of a worker are handled: by the model's settings and the kind of group. */
export function requestsOptions(
  settings: ModelSettings,
  group: WorkerGroup,
  { onFree, onFailure, forClient, onTimeout, onDiscarded, kill }: RequestsOwner,
): RequestsOptions {
  const { hearsCancels } = group
  const responseMs = settings.responseTimeout * 1000
  return {
    window: settings.streamWindowSize,
    credentialHeaders: settings.credentialHeaders,
    heedsCredit: group.heedsCredit,
    batchesAhead: group.takesBatchesAhead ? settings.batchesAhead : 0,
    cancelGraceMs: settings.cancelGraceMs,
    silenceMs: hearsCancels ? undefined : responseMs,
    shared: settings.continuousBatching || (!hearsCancels && settings.maxConcurrency > 1),
    ranks: group.finishingRanks,
    group,
    onFree,
    onFailure,
    forClient,
    onTimeout,
    rankLagMs: responseMs,
    onDeaf: kill,
    onBreach: kill,
    onDiscarded,
  }
}
