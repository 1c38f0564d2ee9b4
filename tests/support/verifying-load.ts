import { expect } from '@jest/globals'
import { countBody } from './count.ts'
import { RawRequest } from './raw-http.ts'
import type { Server } from './server.ts'

/** Streams of the count model that follow each other until `end`; each item of each is compared. */
export class VerifyingLoad {
  readonly #server: Server
  readonly #headers: Readonly<Record<string, string>>
  readonly #loops: Promise<void>
  #over = false
  #begun = 0
  #whole = 0

  /** @param headers of each request, such as its token */
  constructor(server: Server, headers: Readonly<Record<string, string>> = {}, clients = 3) {
    this.#server = server
    this.#headers = headers
    this.#loops = Promise.all(Array.from({ length: clients }, () => this.#loop())).then(() => undefined)
    this.#loops.catch(() => undefined)
  }

  /** One more stream, which begins now. @throws when it, or any other so far, was not whole */
  async goesOn(): Promise<void> {
    await this.#one()
    if (this.#over) await this.#loops
  }

  /** How many streams were whole. @throws when one was not */
  async end(): Promise<number> {
    this.#over = true
    await this.#loops
    expect(this.#whole).toBe(this.#begun)
    return this.#whole
  }

  async #loop(): Promise<void> {
    while (!this.#over) await this.#one()
  }

  async #one(): Promise<void> {
    const n = 2 + (this.#begun % 10)
    this.#begun += 1
    const { headers, body } = countBody({ id: `load-${this.#begun}`, n, delay: 3 })
    const options = { headers: { ...headers, ...this.#headers }, body }
    const stream = new RawRequest(this.#server.ports.inference, '/predictions/count', options)
    const { status, chunks, complete } = await stream.done
    const wanted = Array.from({ length: n }, (_, item) => `${item + 1}\n`)
    try {
      expect([status, chunks.map(String), complete]).toEqual([200, wanted, true])
    } catch (error) {
      this.#over = true
      throw error
    }
    this.#whole += 1
  }
}
