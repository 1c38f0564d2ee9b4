import { rawRequest } from '../../support/raw-http.ts'
import type { Server } from '../../support/server-process.ts'

/** Clients of each server; its model has two slots, so most of them wait. */
const CLIENTS = 8
const STREAM = { n: 10, delay: 100, stream: true }

/** More clients than the pods have slots for, each with one stream after the other. */
export class Crowd {
  readonly #servers: readonly Server[]
  readonly #key: string
  readonly #running: Promise<void>[] = []
  #isOn = true
  /** Streams that came whole, and all others. */
  whole = 0
  readonly lost: string[] = []

  constructor(servers: readonly Server[], key: string) {
    this.#servers = servers
    this.#key = key
  }

  begin(): void {
    for (const server of this.#servers)
      for (let k = 0; k < CLIENTS; k += 1) this.#running.push(this.#repeat(server))
  }

  /** Resolves when the last stream has ended. */
  async end(): Promise<void> {
    this.#isOn = false
    await Promise.all(this.#running)
  }

  async #repeat(server: Server): Promise<void> {
    while (this.#isOn) await this.#ask(server)
  }

  async #ask(server: Server): Promise<void> {
    const headers = { authorization: `Bearer ${this.#key}`, 'content-type': 'application/json' }
    const request = { headers, body: JSON.stringify(STREAM) }
    const { status, complete, body } = await rawRequest(server.ports.inference, '/predictions/story', request)
    if (status === 200 && complete) this.whole += 1
    else this.lost.push(`${status} ${body}`)
  }
}
