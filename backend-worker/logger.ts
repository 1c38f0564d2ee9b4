import type { LogLevel } from '../protocol/messages.ts'
import type { Logger } from './handler.ts'
import { type Outlet, sendLog } from './outlet.ts'

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
