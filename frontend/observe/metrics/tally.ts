import type { RequestErrors } from '../../../common/server-events.ts'
import { Distribution } from './distribution.ts'

/** Outcome of a request. `client_stalled`: a time limit passed while the handler waited for the client. */
export type Outcome = 'finished' | 'failed' | 'cancelled' | 'timed_out' | 'client_stalled'

/** This server's own metrics separate streams from unary answers. */
export type RequestKind = 'stream' | 'unary'

/** Counts of one kind of request. Times are in seconds. */
export class KindTally {
  readonly endings: Record<Outcome, number> = {
    finished: 0,
    failed: 0,
    cancelled: 0,
    timed_out: 0,
    client_stalled: 0,
  }
  /** From arrival until a worker takes the request, or until it ends without one. */
  readonly queue = new Distribution()
  /** From arrival to the first response. */
  readonly firstResponse = new Distribution()
  /** From arrival to the end. */
  readonly whole = new Distribution()
}

/** Counts of one model version. Plain fields keep counting cheap; the metrics page reads them on demand. */
export class Tally {
  readonly kinds: Readonly<Record<RequestKind, KindTally>> = {
    stream: new KindTally(),
    unary: new KindTally(),
  }
  /** Between two responses of a stream. */
  readonly gaps = new Distribution()
  /** From the start of a worker until its handler has loaded. */
  readonly workerStart = new Distribution()
  /** From a request to a model without workers until a worker has loaded the handler. */
  readonly wake = new Distribution()
  /** Responses of requests that have ended, and their bytes: each item of a stream is one. */
  items = 0
  bytes = 0
  workerDeaths = 0
  /** Requests that weights sent to the version; undefined: none. */
  routed: number | undefined
  discardedResponses = 0

  /** Requests that failed or timed out since the last one that finished. */
  failedInARow = 0
  /** The same since the start, by error code: the codes are a closed list. */
  readonly errors = new Map<string, RequestErrors>()

  /** Number of requests that have ended. */
  get ended(): number {
    let count = 0
    for (const { endings } of [this.kinds.stream, this.kinds.unary])
      for (const ended of Object.values(endings)) count += ended
    return count
  }
}
