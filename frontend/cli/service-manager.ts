import { execFile } from 'node:child_process'
import { startTimer } from '../../common/timer.ts'

/**
 * Tells systemd about this process, where a unit of `Type=notify` started it: sd_notify(3),
 * sd_watchdog_enabled(3) and docs/deploying.md. Node has no Unix datagram sockets, so each message is a call
 * of systemd-notify, and the unit needs `NotifyAccess=all`. Without NOTIFY_SOCKET it does nothing.
 */
export class ServiceManager {
  readonly #env: NodeJS.ProcessEnv | undefined
  /** Half of the time without a message after which systemd ends the service; undefined: it does not. */
  readonly #watchdogMs: number | undefined
  readonly #warn: (line: string) => void
  #timer: NodeJS.Timeout | undefined

  /**
   * Takes the variables out of `env`, so that workers cannot speak for the server.
   * @param warn is called for a message that systemd did not get
   */
  constructor(env: NodeJS.ProcessEnv, warn: (line: string) => void) {
    const given = { ...env }
    delete env['NOTIFY_SOCKET']
    delete env['WATCHDOG_USEC']
    delete env['WATCHDOG_PID']
    this.#warn = warn
    if (given['NOTIFY_SOCKET'] === undefined) return
    this.#env = given
    const microseconds = Number(given['WATCHDOG_USEC'])
    const isMine = (given['WATCHDOG_PID'] ?? String(process.pid)) === String(process.pid)
    if (isMine && microseconds > 0) this.#watchdogMs = microseconds / 2000
  }

  /** The server serves. From now on systemd hears at intervals that the event loop runs. */
  ready(): void {
    this.#notify('READY=1')
    this.#watch()
  }

  /** The server drains: the watchdog goes on meanwhile. */
  stopping(): void {
    this.#notify('STOPPING=1')
  }

  close(): void {
    clearTimeout(this.#timer)
  }

  #watch(): void {
    if (this.#watchdogMs === undefined) return
    this.#timer = startTimer(() => {
      this.#notify('WATCHDOG=1')
      this.#watch()
    }, this.#watchdogMs)
  }

  #notify(state: string): void {
    if (this.#env === undefined) return
    execFile('systemd-notify', [state], { env: this.#env }, (error, _out, stderr) => {
      if (error === null) return
      const cause = stderr.trim() || error.message
      this.#warn(`systemd was not told ${state}: ${cause}`)
    })
  }
}
