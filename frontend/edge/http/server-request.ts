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

/**
 * Chunks of any size that a body may have: some milliseconds of work, and a slow client that sends ten each
 * second needs half an hour for them. From then on they must have a size on average, since a chunk of a byte
 * takes as long as one of a kilobyte.
 */
const FREE_CHUNKS = 20_000
const MIN_CHUNK_BYTES = 32

/** What a client is told that goes beyond it. */
export const TINY_CHUNKS = `After ${FREE_CHUNKS} chunks, the chunks of a body must have ${MIN_CHUNK_BYTES} bytes on average`

/** The chunks that the body of one request may have. */
export class ChunkAllowance {
  #chunks = 0
  #bytes = 0
  readonly #free: number

  /** @param free chunks that may have any size */
  constructor(free = FREE_CHUNKS) {
    this.#free = free
  }

  /** Returns false if there are too many for their size. */
  take({ byteLength }: Buffer): boolean {
    this.#chunks += 1
    this.#bytes += byteLength
    return this.#chunks <= this.#free || this.#bytes >= this.#chunks * MIN_CHUNK_BYTES
  }
}

/** Chunks of any size that are read although nobody wants them. */
const UNWANTED_CHUNKS = 1_000

/** Milliseconds in which a client that still sends can read the answer. */
export const LINGER_MS = 2_000

/**
 * Reads on a body that nobody wants, so that its sender gets to read the answer, and so that the next request
 * can follow. Tiny chunks are work even then: after some of them the connection is read no further, and
 * closed.
 */
export function skipBody(req: ServerRequest): void {
  const allowance = new ChunkAllowance(UNWANTED_CHUNKS)
  let isCut = false
  const pass = (chunk: Buffer): void => {
    if (isCut || allowance.take(chunk)) return
    isCut = true
    const timer = setTimeout(() => req.socket.destroySoon(), LINGER_MS)
    req.once('close', () => clearTimeout(timer))
    // Before the next read of this turn of the event loop, which would be thousands of chunks more.
    process.nextTick(() => req.pause())
  }
  req.release()
  req.on('data', pass).resume()
}
