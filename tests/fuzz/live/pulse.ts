import { setTimeout as sleep } from 'node:timers/promises'
import { cpuMilliseconds } from '../../../benchmarks/processes.ts'
import { residentBytes } from '../../support/memory.ts'
import { rawRequest } from '../../support/raw-http.ts'
import type { Server } from '../../support/server-process.ts'

const EVERY_MS = 100
const LIMIT_MS = 1_000
/** On a busy machine anything is late; only time in which the server computed counts. */
const BUSY_SHARE = 0.6
const REMEMBERED = 20

/** Asks for /ping all the time, and watches the memory. */
export class Pulse {
  beats = 0
  longest = 0
  /** Resident bytes at most. */
  peak = 0
  /** Answers that took longer because the server was busy. */
  readonly late: string[] = []
  /** What was sent last. */
  readonly latest: [name: string, input: Uint8Array][] = []
  readonly #server: Server
  readonly #beating: Promise<void>
  #stopped = false

  constructor(server: Server) {
    this.#server = server
    this.#beating = this.#beat()
  }

  note(name: string, input: Uint8Array): void {
    this.latest.push([name, input])
    if (this.latest.length > REMEMBERED) this.latest.shift()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.#beating
  }

  async #beat(): Promise<void> {
    const { pid, ports, process: child } = this.#server
    while (!this.#stopped && child.exitCode === null && child.signalCode === null) {
      const busyBefore = cpuMilliseconds([pid])
      const began = performance.now()
      const { status } = await rawRequest(ports.inference, '/ping', { method: 'GET' })
      const took = performance.now() - began
      const busy = cpuMilliseconds([pid]) - busyBefore
      this.beats += 1
      this.longest = Math.max(this.longest, took)
      if (status !== 200) this.late.push(` status ${status}`)
      if (took > LIMIT_MS && busy > took * BUSY_SHARE)
        this.late.push(` ${Math.round(took)} ms, ${busy} of them computing`)
      try {
        this.peak = Math.max(this.peak, residentBytes(pid))
      } catch {
        // It has ended.
      }
      await sleep(EVERY_MS)
    }
  }
}
