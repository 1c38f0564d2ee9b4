import type { FromWorker, LogLevel } from '../protocol/messages.ts'
import type { Logger } from './handler.ts'

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
  /**
   * Hands everything to the kernel. A promise to await before other work begins, if the kernel has not taken
   * it all, or if messages may have arrived that were not handled (Channel.flush).
   */
  flush(): Promise<void> | undefined
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

/** `context.logger`: writes to the frontend's model log, with the request id if an index is given. */
export class ContextLogger implements Logger {
  readonly #outlet: Outlet
  readonly #requestIds: readonly string[]

  constructor(outlet: Outlet, requestIds: readonly string[]) {
    this.#outlet = outlet
    this.#requestIds = requestIds
  }

  debug(message: string, requestIndex?: number): void {
    this.#log('debug', message, requestIndex)
  }

  info(message: string, requestIndex?: number): void {
    this.#log('info', message, requestIndex)
  }

  warn(message: string, requestIndex?: number): void {
    this.#log('warn', message, requestIndex)
  }

  error(message: string, requestIndex?: number): void {
    this.#log('error', message, requestIndex)
  }

  #log(level: LogLevel, message: string, requestIndex: number | undefined): void {
    const requestId = requestIndex === undefined ? undefined : this.#requestIds[requestIndex]
    sendLog(this.#outlet, level, message, requestId)
  }
}
