import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { performance } from 'node:perf_hooks'
import { CONTENT_TYPE } from '../ceilings/workload.ts'
import { pause } from '../measures/figure.ts'

/** Connections that are opened at the same time. */
const OPENING = 100
/** Milliseconds that the first answer may take. */
const MOST_MS = 60_000

/** Bytes of one POST request on a connection that stays open. */
export function postBytes(path: string, body: Uint8Array): Buffer {
  const head = `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: ${CONTENT_TYPE}\r\ncontent-length: ${body.byteLength}\r\n\r\n`
  return Buffer.concat([Buffer.from(head), body])
}

/** Opens `count` connections, some at a time. */
export async function connectAll(origin: string, count: number): Promise<Socket[]> {
  const { hostname, port } = new URL(origin)
  const sockets: Socket[] = []
  while (sockets.length < count) {
    const some = Array.from({ length: Math.min(OPENING, count - sockets.length) }, () =>
      connect({ host: hostname, port: Number(port), noDelay: true }),
    )
    await Promise.all(some.map((socket) => once(socket, 'connect')))
    sockets.push(...some)
  }
  return sockets
}

/** Clients that each send their next request when the last one is answered. */
export class ClosedLoop {
  readonly #clients: LoopClient[]
  #latencies: number[] = []
  #failure: Error | undefined

  /**
   * @param next the bytes of the next request, whoever sends it
   * @param answered gets the last bytes of each answer
   */
  static async start(
    origin: string,
    clients: number,
    next: () => Buffer,
    answered: (last: Buffer) => void = () => undefined,
  ): Promise<ClosedLoop> {
    return new ClosedLoop(await connectAll(origin, clients), next, answered)
  }

  private constructor(sockets: Socket[], next: () => Buffer, answered: (last: Buffer) => void) {
    const ended = (ms: number, last: Buffer): void => {
      this.#latencies.push(ms)
      answered(last)
    }
    const failed = (error: Error): void => void (this.#failure ??= error)
    this.#clients = sockets.map((socket) => new LoopClient(socket, next, ended, failed))
  }

  /**
   * Latencies of the requests that end in the next `seconds`, and until one has ended. @throws Error for an
   * answer that is not 200, or without any answer in a minute
   */
  async run(seconds: number): Promise<number[]> {
    this.#latencies = []
    const deadline = performance.now() + MOST_MS
    await pause(seconds * 1000)
    while (this.#latencies.length === 0 && this.#failure === undefined && performance.now() < deadline)
      await pause(100)
    if (this.#failure !== undefined) throw this.#failure
    return this.#latencies
  }

  stop(): void {
    for (const client of this.#clients) client.stop()
  }
}

const CHUNKS_END = Buffer.from('\r\n0\r\n\r\n')

type Ended = (ms: number, last: Buffer) => void

class LoopClient {
  readonly #socket: Socket
  readonly #next: () => Buffer
  readonly #ended: Ended
  #sentAt = 0
  /** Bytes of the answer that have not arrived; Infinity: the answer is chunked. */
  #missing: number | undefined
  /** The end of what has arrived of a chunked answer. */
  #tail: Buffer = Buffer.alloc(0)

  constructor(socket: Socket, next: () => Buffer, ended: Ended, failed: (e: Error) => void) {
    this.#socket = socket
    this.#next = next
    this.#ended = ended
    socket.on('error', failed)
    socket.on('close', () => failed(new Error('The server closed a connection of the benchmark')))
    socket.on('data', (chunk) => {
      try {
        this.#read(chunk)
      } catch (error) {
        failed(error as Error)
      }
    })
    this.#send()
  }

  stop(): void {
    this.#socket.removeAllListeners('close').destroy()
  }

  #send(): void {
    this.#missing = undefined
    this.#sentAt = performance.now()
    this.#socket.write(this.#next())
  }

  #read(chunk: Buffer): void {
    if (this.#missing === undefined) this.#readHead(chunk)
    else this.#missing -= chunk.byteLength
    if (!this.#isWhole(chunk)) return
    this.#ended(performance.now() - this.#sentAt, chunk)
    this.#send()
  }

  /** The server writes the head in one piece. */
  #readHead(chunk: Buffer): void {
    const end = chunk.indexOf('\r\n\r\n') + 4
    const head = chunk.toString('latin1', 0, end)
    if (end < 4 || !head.startsWith('HTTP/1.1 200 '))
      throw new Error(`The server answered the benchmark: ${chunk.toString('latin1', 0, 400)}`)
    const length = /^content-length: (\d+)$/im.exec(head)
    this.#missing = length === null ? Infinity : Number(length[1]) + end - chunk.byteLength
    this.#tail = Buffer.alloc(0)
  }

  #isWhole(chunk: Buffer): boolean {
    if (this.#missing !== Infinity) return this.#missing === 0
    const last = chunk.subarray(-CHUNKS_END.byteLength)
    this.#tail =
      last.byteLength === CHUNKS_END.byteLength
        ? last
        : Buffer.concat([this.#tail, last]).subarray(-CHUNKS_END.byteLength)
    return this.#tail.equals(CHUNKS_END)
  }
}
