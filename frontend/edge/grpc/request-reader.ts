import type { ServerHttp2Stream } from 'node:http2'
import { status as Status, type ServerInterceptingCallInterface } from '@grpc/grpc-js'
import type { ByteBudget } from './byte-budget.ts'
import type { Decompressor } from './decompressor.ts'
import type { CallError } from '../../dialects/torchserve/grpc-errors.ts'
import { MESSAGE_BYTES } from './limits.ts'
import { MessageBytes, PREFIX_BYTES } from './message-bytes.ts'

/** What a reader needs to know of its call. */
export interface ReaderOptions {
  /** Bytes of the connection that may wait. */
  readonly budget: ByteBudget
  /** Bytes that the call itself has taken from it. */
  readonly callBytes: number
  readonly maxMessage: number
  /** Whether the client may send any number of messages. */
  readonly isStream: boolean
  readonly encoding: string
  readonly decompressor: Decompressor
}

/** A message that is whole: decompressed in its turn, `parts` undefined until then. */
interface Whole {
  parts: readonly Buffer[] | undefined
  cost: number
  /** Takes it out of the line for decompression. */
  cancel?: () => void
}

type Push = ServerHttp2Stream['push']

/** How long a call that was failed may take to tell its client before it is reset. */
const FAREWELL_MS = 1_000
const NGHTTP2_ENHANCE_YOUR_CALM = 11

/**
 * Stands between Node's HTTP/2 and grpc-js for the messages of one call: grpc-js would keep every DATA frame as it comes, each with
 * the whole chunk of the socket that it is a part of. Here a message is collected in memory of its own, counted as it grows, and
 * handed on when it is whole; compressed ones are decompressed first. What a message counted is given back when grpc-js has it, or,
 * where grpc-js waits for the end of the request before it calls the handler, at that end.
 */
export class RequestReader {
  /** Set when grpc-js has its call for the stream. */
  call: ServerInterceptingCallInterface | undefined
  readonly #stream: ServerHttp2Stream
  readonly #options: ReaderOptions
  readonly #push: Push
  /** Made for the first message that comes in pieces. */
  #bytes: MessageBytes | undefined
  /** Whole messages that wait for the decompression of the first. */
  readonly #queue: Whole[] = []
  /** What each chunk counts that the stream holds for grpc-js; only where there may be many messages. */
  readonly #costs: number[] = []
  #taken: number
  #clientEnded = false
  #endWaits = false
  #over = false
  /** Sweeps since the message that is not whole yet began. */
  #age = 0

  constructor(stream: ServerHttp2Stream, options: ReaderOptions) {
    this.#stream = stream
    this.#options = options
    this.#taken = options.callBytes
    this.#push = stream.push.bind(stream)
    // Node hands what it reads to `push`, as to that of every Readable.
    stream.push = (chunk: Buffer | null): boolean => (chunk === null ? this.#takeEnd() : this.#take(chunk))
  }

  /** To be called when grpc-js has seen the stream: it listens and has paused it. */
  attach(): void {
    if (this.#options.isStream) this.#stream.on('data', this.#onDelivered)
    this.#stream.on('finish', this.#onFinish)
    this.#stream.on('wantTrailers', this.#onTrailers)
  }

  /** The stream has closed. */
  close(): void {
    this.#over = true
    this.#release(this.#taken)
    this.#drop()
  }

  /** Called at equal intervals: fails the call when its message has been under way for `limit` of them. */
  sweep(limit: number, details: string): void {
    if (!this.#isAwaited()) this.#age = 0
    else if (++this.#age > limit) this.fail({ code: Status.DEADLINE_EXCEEDED, details })
  }

  /** Ends the call, whatever grpc-js and the handler are at. */
  fail({ code, details }: CallError): void {
    if (this.#over) return
    this.#over = true
    this.#drop()
    this.call?.sendStatus({ code, details, metadata: null })
    setTimeout(() => this.#stream.close(NGHTTP2_ENHANCE_YOUR_CALM), FAREWELL_MS).unref()
  }

  /** Whether the client owes something: a paused stream's client may be held up by us. */
  #isAwaited(): boolean {
    if (this.#over || this.#clientEnded) return false
    return !this.#options.isStream || (this.#bytes?.begun === true && !this.#stream.isPaused())
  }

  #take(chunk: Buffer): boolean {
    if (this.#over) return true
    if (this.#bytes?.begun !== true && this.#queue.length === 0 && this.#isPlainMessage(chunk)) {
      const cost = chunk.byteLength + MESSAGE_BYTES
      return !this.#charge(cost) || this.#deliver([chunk], cost)
    }
    return this.#collect(chunk)
  }

  /** Most requests: one message, and nothing else. */
  #isPlainMessage(chunk: Buffer): boolean {
    const size = chunk.byteLength - PREFIX_BYTES
    return size >= 0 && chunk[0] === 0 && chunk.readUInt32BE(1) === size && size <= this.#options.maxMessage
  }

  #collect(chunk: Buffer): boolean {
    const bytes = (this.#bytes ??= new MessageBytes(this.#options.maxMessage))
    let hasRoom = true
    for (let at = 0; at < chunk.byteLength && !this.#over;) {
      if (!bytes.begun && !this.#charge(MESSAGE_BYTES)) return true
      const before = bytes.allocated
      at = bytes.add(chunk, at)
      if (bytes.tooLarge) {
        const details = `Received message larger than max (${bytes.size} vs ${this.#options.maxMessage})`
        this.fail({ code: Status.RESOURCE_EXHAUSTED, details })
      } else if (this.#charge(bytes.allocated - before) && bytes.whole) hasRoom = this.#takeWhole(bytes)
    }
    return hasRoom
  }

  #takeWhole(bytes: MessageBytes): boolean {
    const { encoding, decompressor } = this.#options
    const cost = bytes.allocated + MESSAGE_BYTES
    const isCompressed = bytes.compressed && decompressor.knows(encoding)
    const parts = bytes.release()
    if (!isCompressed && this.#queue.length === 0) return this.#deliver(parts, cost)
    const entry: Whole = { parts: isCompressed ? undefined : parts, cost }
    this.#queue.push(entry)
    if (isCompressed) this.#decompress(entry, parts)
    return true
  }

  #decompress(entry: Whole, parts: readonly Buffer[]): void {
    const data = (parts.length === 1 ? parts[0]! : Buffer.concat(parts)).subarray(PREFIX_BYTES)
    entry.cancel = this.#options.decompressor.decompress(this.#options.encoding, data, (error, message) => {
      if (this.#over) return
      if (error !== undefined) {
        this.fail(error)
        return
      }
      if (!this.#charge(message.byteLength)) return
      this.#release(entry.cost - MESSAGE_BYTES)
      const prefix = Buffer.alloc(PREFIX_BYTES)
      prefix.writeUInt32BE(message.byteLength, 1)
      entry.cost = message.byteLength + MESSAGE_BYTES
      entry.parts = [prefix, message]
      this.#flush()
    })
  }

  /** Hands on what is ready, in order. */
  #flush(): void {
    for (let first = this.#queue[0]; first?.parts !== undefined; first = this.#queue[0]) {
      this.#queue.shift()
      this.#deliver(first.parts, first.cost)
    }
    if (this.#queue.length > 0 || !this.#endWaits) return
    this.#endWaits = false
    this.#end()
  }

  /** False: grpc-js has enough for now. */
  #deliver(parts: readonly Buffer[], cost: number): boolean {
    let hasRoom = true
    const last = parts.length - 1
    for (let i = 0; i <= last; i++) {
      if (this.#options.isStream) this.#costs.push(i === last ? cost : 0)
      hasRoom = this.#push(parts[i]!)
    }
    return hasRoom
  }

  #takeEnd(): boolean {
    this.#clientEnded = true
    if (this.#queue.length === 0 || this.#over) return this.#end()
    this.#endWaits = true
    return true
  }

  #end(): boolean {
    if (!this.#options.isStream) this.#release(this.#taken - this.#options.callBytes)
    return this.#push(null)
  }

  readonly #onDelivered = (): void => {
    this.#release(this.#costs.shift() ?? 0)
  }

  /** An answer without messages: the client need not go on with its request (RFC 9113, 8.1). */
  readonly #onFinish = (): void => {
    if (this.#clientEnded || this.#stream.sentHeaders?.['grpc-status'] === undefined) return
    this.#stream.close()
  }

  /** The same for one with messages. This is heard before grpc-js sends the trailers. */
  readonly #onTrailers = (): void => {
    if (!this.#clientEnded) setImmediate(() => this.#stream.close())
  }

  #charge(bytes: number): boolean {
    if (bytes === 0) return true
    if (this.#options.budget.take(bytes)) {
      this.#taken += bytes
      return true
    }
    this.fail({
      code: Status.RESOURCE_EXHAUSTED,
      details:
        'Too many bytes of unfinished requests wait on this connection or server; send fewer at a time',
    })
    return false
  }

  #release(bytes: number): void {
    this.#taken -= bytes
    this.#options.budget.give(bytes)
  }

  #drop(): void {
    this.#bytes?.release()
    for (const { cancel } of this.#queue) cancel?.()
    this.#queue.length = 0
  }
}
