import type { ServerResponse } from 'node:http'
import { framed, openStream, serve, whole } from './http.ts'
import { KIND, Link, type Receiver } from './link.ts'
import { ECHO } from './workload.ts'

/** Ceiling (b), "the worker ceiling": node:http in front of one worker process on a Unix socket. */

class Reply implements Receiver {
  readonly #response: ServerResponse
  #open = false
  #chunks = ''

  constructor(response: ServerResponse) {
    this.#response = response
  }

  item(chunk: Buffer, from: number, to: number): void {
    if (!this.#open) openStream(this.#response)
    this.#open = true
    this.#chunks += framed(chunk.toString('latin1', from, to))
  }

  last(chunk: Buffer, from: number, to: number): void {
    if (!this.#open) {
      whole(this.#response, chunk.toString('latin1', from, to))
      return
    }
    this.#response.socket?.write(this.#chunks, 'latin1')
    this.#response.end()
  }

  flush(): void {
    const { socket } = this.#response
    socket?.write(this.#chunks, 'latin1')
    socket?.uncork()
    this.#chunks = ''
  }
}

const link = new Link(process.argv[2]!)
serve((request, response, body) => {
  link.ask(request.url!.endsWith(ECHO) ? KIND.whole : KIND.stream, body, new Reply(response))
})
