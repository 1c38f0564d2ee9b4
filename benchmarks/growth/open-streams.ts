import type { Socket } from 'node:net'
import { now } from '../measures/produced.ts'
import type { GrowthServer } from './servers.ts'
import { connectAll, postBytes } from './closed-loop.ts'

export const PACED = 'paced'
/** Streams that are opened at the same time. */
const OPENING = 100
const MADE_AT = /\d{13}\.\d{3}/g

/** A growing number of streams of `paced` (benchmarks/handlers/paced), each with its first item arrived. */
export class OpenStreams {
  readonly #origin: string
  readonly #request: Buffer
  readonly #sockets: Socket[] = []
  #latencies: number[] = []
  #lost = 0

  constructor({ restOrigin }: GrowthServer, kind: 'paced' | 'idle') {
    this.#origin = restOrigin!
    this.#request = postBytes(`/predictions/${PACED}`, Buffer.from(kind))
  }

  /** Streams that the server still holds. */
  get open(): number {
    return this.#sockets.length - this.#lost
  }

  /** Opens streams until there are `count`. */
  async grow(count: number): Promise<void> {
    while (this.#sockets.length < count) {
      const sockets = await connectAll(this.#origin, Math.min(OPENING, count - this.#sockets.length))
      this.#sockets.push(...sockets)
      await Promise.all(sockets.map((socket) => this.#open(socket)))
    }
  }

  /** The latencies of the items that arrive in the next `seconds`, in milliseconds. */
  async run(seconds: number): Promise<number[]> {
    this.#latencies = []
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
    if (this.#lost > 0) throw new Error(`The server ended ${this.#lost} streams`)
    return this.#latencies
  }

  close(): void {
    for (const socket of this.#sockets) socket.removeAllListeners('close').destroy()
  }

  #open(socket: Socket): Promise<void> {
    return new Promise((resolve, reject) => {
      let started = false
      socket.on('error', reject)
      socket.on('close', () => {
        this.#lost += 1
        reject(new Error('The server ended a stream'))
      })
      socket.on('data', (chunk) => {
        const text = chunk.toString('latin1')
        if (!started && !text.startsWith('HTTP/1.1 200 ')) reject(new Error(`No stream: ${text}`))
        started = true
        for (const [madeAt] of text.matchAll(MADE_AT)) {
          this.#latencies.push(now() - Number(madeAt))
          resolve()
        }
      })
      socket.write(this.#request)
    })
  }
}
