import type { ServeError } from '../../common/errors.ts'
import type { WorkerGroup } from './worker-group.ts'

const nothing = (): void => undefined

/** A worker that cannot be started here: it has no processes, and loading it fails. */
export function refusedGroup(reason: ServeError): WorkerGroup {
  return {
    pid: -1,
    pids: [],
    finishingRanks: 1,
    unsentBytes: 0,
    isNative: false,
    methods: [],
    load: () => Promise.reject(reason),
    send: nothing,
    sendToFirst: nothing,
    stop: () => Promise.resolve(true),
    kill: nothing,
    exited: () => Promise.resolve(),
  }
}
