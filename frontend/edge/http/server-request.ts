import { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { ReadPace } from '../../../common/byte-flow.ts'
import { type Explained, explainedOf } from '../unexplained-bytes.ts'

/** Largest head. */
export const MAX_HEAD_BYTES = 12_288
/** What a chunk of a body may have beside its content: its size, and some extension. */
const CHUNK_BYTES = 128

/**
 * Of all bodies. Node also accepts only one connection in a turn: behind two hundred clients that sent large
 * bodies at once, a new one waited for seconds.
 */
const pace = new ReadPace(262_144, 4)

/** Takes a body as it arrives. */
export interface BodyTaker {
  /** Returns false if it wants nothing more; it gets no further chunk then, and not the end. */
  take(chunk: Buffer): boolean
  end(): void
}

/**
 * Every request of the REST listeners. Its body can go straight from Node's parser to a taker. The stream in
 * between takes a tenth of the time of a short request: its chunk, its end and its close are each a turn of
 * `process.nextTick`.
 */
export class ServerRequest extends IncomingMessage {
  /** Bytes of the body that have arrived. */
  bodyBytes = 0
  readonly #explained: Explained
  #taker: BodyTaker | undefined
  #isTaken = false

  static {
    // Node asks whether a request was read to its end before it keeps its connection.
    Object.defineProperty(ServerRequest.prototype, 'readableEnded', {
      get(this: ServerRequest): unknown {
        return this.#isTaken || Reflect.get(IncomingMessage.prototype, 'readableEnded', this)
      },
    })
  }

  constructor(socket: Socket) {
    super(socket)
    this.#explained = explainedOf(socket)
    this.#explained.bytes += MAX_HEAD_BYTES
  }

  /** Passes the body on, from now on. Whoever calls it must not read the request otherwise. */
  passTo(taker: BodyTaker): void {
    if (this.complete || this.readableLength > 0) {
      // It waited for something else, and some of its body has arrived.
      let isOpen = true
      this.on('data', (chunk: Buffer) => (isOpen = isOpen && taker.take(chunk)))
      this.on('end', () => isOpen && taker.end())
      return
    }
    this.#taker = taker
    // Otherwise Node would read what nobody seems to have read.
    ;(this as { _consuming?: boolean })._consuming = true
  }

  /** From now on it is a stream again. */
  release(): void {
    this.#taker = undefined
  }

  /** Node's parser calls it for each chunk, and with null at the end. */
  override push(chunk: Buffer | null): boolean {
    if (chunk !== null) {
      this.bodyBytes += chunk.length
      this.#explained.bytes += chunk.length + CHUNK_BYTES
      // Not the first chunk, which is all that most bodies have.
      if (this.bodyBytes > chunk.length) pace.read(this.socket, chunk.length)
    }
    const taker = this.#taker
    if (taker === undefined) return super.push(chunk)
    if (chunk === null) {
      this.#taker = undefined
      this.#isTaken = true
      taker.end()
      return false
    }
    if (taker.take(chunk)) return true
    this.#taker = undefined
    return super.push(chunk)
  }
}
