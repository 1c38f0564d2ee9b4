import type { ModelSettings } from '../models/model-settings.ts'
import type { RequestsOptions } from './requests.ts'
import type { WorkerGroup } from './worker-group.ts'

/** What a worker does for its requests. */
interface RequestsOwner extends Pick<RequestsOptions, 'onFree' | 'onFailure' | 'onTimeout' | 'onDiscarded'> {
  /** Its processes cannot go on. */
  kill(why: string): void
}

/** How the requests of one start of a worker are handled: by the model's settings and the kind of group. */
export function requestsOptions(
  settings: ModelSettings,
  group: WorkerGroup,
  { onFree, onFailure, onTimeout, onDiscarded, kill }: RequestsOwner,
): RequestsOptions {
  const { hearsCancels } = group
  const responseMs = settings.responseTimeout * 1000
  return {
    window: settings.streamWindowSize,
    credentialHeaders: settings.sandbox.headers,
    heedsCredit: group.heedsCredit,
    batchesAhead: group.takesBatchesAhead ? settings.batchesAhead : 0,
    cancelGraceMs: settings.cancelGraceMs,
    silenceMs: hearsCancels ? undefined : responseMs,
    shared: settings.continuousBatching || (!hearsCancels && settings.maxConcurrency > 1),
    ranks: group.finishingRanks,
    send: (message) => {
      group.send(message)
    },
    sendToFirst: (message) => {
      group.sendToFirst(message)
    },
    onFree,
    onFailure,
    onTimeout,
    rankLagMs: responseMs,
    onDeaf: kill,
    onBreach: kill,
    onDiscarded,
  }
}
