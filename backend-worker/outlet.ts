import type { FromWorker, LogLevel } from '../protocol/messages.ts'

/** The destination of messages to the frontend: the channel, or a list in a test. */
export interface Outlet {
  send(message: FromWorker): void
  /** An intermediate response that consists of a body only. */
  sendItem(id: number, body: Uint8Array): void
  /**
   * To be called after a send: lets it leave if it should. A promise to await before the next send, if the
   * event loop has been held for long (Channel.flushEarly).
   */
  flushEarly(): Promise<void> | undefined
  /** Bytes sent that the frontend has not taken yet. */
  readonly unsentBytes: number
}

const MAX_MESSAGE_CHARACTERS = 32_768
/** Above this number of pending bytes, logs and metrics are dropped, because no credit bounds them. */
const MAX_UNSENT_BYTES = 4 * 1024 * 1024

/** Sends a log line, cut to a length that fits a frame. Drops it when the frontend does not keep up. */
export function sendLog(outlet: Outlet, level: LogLevel, message: unknown, requestId?: string): void {
  if (outlet.unsentBytes > MAX_UNSENT_BYTES) return
  const text = typeof message === 'string' ? message : String(message)
  const log: FromWorker = { type: 'log', level, message: text.slice(0, MAX_MESSAGE_CHARACTERS) }
  if (requestId !== undefined) log.requestId = requestId
  outlet.send(log)
}

/** Sends a metric. Drops it when the frontend does not keep up. */
export function sendMetric(outlet: Outlet, metric: FromWorker & { type: 'metric' }): void {
  if (outlet.unsentBytes <= MAX_UNSENT_BYTES) outlet.send(metric)
}
