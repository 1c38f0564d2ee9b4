import { Distribution } from './distribution.ts'

/** How a request may end (frontend/jobs/job.ts). */
export type Outcome = 'finished' | 'failed' | 'cancelled' | 'timed_out'

/** Streams and whole answers are apart in every metric of our own. */
export type RequestKind = 'stream' | 'unary'

/** What is counted of the requests of one kind. Times are in seconds. */
export class KindTally {
  readonly endings: Record<Outcome, number> = { finished: 0, failed: 0, cancelled: 0, timed_out: 0 }
  /** From the arrival to a worker, or to the end of those that no worker got. */
  readonly queue = new Distribution()
  /** From the arrival to the first response. */
  readonly firstResponse = new Distribution()
  /** From the arrival to the end. */
  readonly whole = new Distribution()
}

/**
 * What is counted for one model version while requests pass: plain fields, so that counting costs next to nothing. The
 * metrics page reads them when it is asked for.
 */
export class Tally {
  readonly kinds: Readonly<Record<RequestKind, KindTally>> = {
    stream: new KindTally(),
    unary: new KindTally(),
  }
  /** Between two responses of a stream. */
  readonly gaps = new Distribution()
  workerDeaths = 0
  discardedResponses = 0
}
