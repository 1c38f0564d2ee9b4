import type { RequestListener, ServerResponse } from 'node:http'
import type { RestState } from './rest-state.ts'

const STARTED = Symbol('started')

interface TimedResponse extends ServerResponse {
  /** Milliseconds since the epoch. */
  [STARTED]?: number
}

/** Notes when a request came, for its line in the access log. */
export function timed(listener: RequestListener): RequestListener {
  return (req, res: TimedResponse) => {
    res[STARTED] = Date.now()
    listener(req, res)
  }
}

/**
 * Counts an answer and writes its line in the access log. To be called once for each, when its head is written: the line of a stream
 * tells the time to its first item, as in TorchServe (spec 2.2).
 */
export function answered(state: RestState, res: ServerResponse, status: number): void {
  state.metrics.response(status)
  logAccess(state, res, status)
}

/** The line alone, for what the metrics do not count. */
export function logAccess({ accessLog }: RestState, res: TimedResponse, status: number): void {
  accessLog?.rest(res.req, status, res[STARTED] ?? Date.now())
}
