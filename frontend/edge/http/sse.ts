import type { ChunkWriter, Frame } from './chunk-writer.ts'
import { beatFor, type Beating } from './heartbeat.ts'
import type { HttpReply } from './http-reply.ts'
import { baseHeaders } from './reply-headers.ts'

const EVENT: Frame = { before: 'data: ', after: '\n\n' }
const HEARTBEAT = ': keep-alive\n\n'
/**
 * Each of them ends a line of an event stream (WHATWG HTML, server-sent events): what follows would be a
 * field, or an event, of the handler's making.
 */
const LINE_ENDS = /[\r\n]/g
const CARRIAGE_RETURN = 0x0d
const LINE_FEED = 0x0a
const SPACE = 0x20

/**
 * A reply as Server-Sent Events. The dialect decides when it opens (at the first item, so that a failure
 * before it is a plain answer), what an event says and how the stream ends; each event leaves at once as one
 * HTTP chunk.
 */
export class EventStream implements Beating {
  lastWrite = 0
  readonly heartbeatMs: number
  readonly reply: HttpReply
  #writer: ChunkWriter | undefined

  /**
   * `heartbeatMs`: after so long a silence a comment is sent; 0: never, for clients that know only `data:`
   * lines.
   */
  constructor(reply: HttpReply, heartbeatMs = 0) {
    this.reply = reply
    this.heartbeatMs = heartbeatMs
  }

  get ended(): boolean {
    return this.reply.ended
  }

  /**
   * Sends the head: status 200. `headers` are further names and values, one after the other.
   * @throws ServeError INVALID_OUTPUT when they cannot be sent
   */
  open(headers: readonly string[] = []): void {
    if (this.reply.ended || this.#writer !== undefined) return
    const { exchange } = this.reply
    const head = baseHeaders(exchange.requestId, this.reply.keepsAlive(200))
    head.push('content-type', 'text/event-stream; charset=utf-8', ...headers)
    this.#writer = this.reply.open(200, head, EVENT)
    if (this.heartbeatMs > 0) beatFor(this)
  }

  /**
   * One event; a line end in `data` becomes a space, which is the same in JSON. Opens the stream if need be.
   * False: the connection is full, the source will hear `drained`.
   */
  event(data: string): boolean {
    if (this.reply.ended) return true
    if (this.#writer === undefined) this.open()
    this.lastWrite = performance.now()
    return this.#writer!.writeText(data.replace(LINE_ENDS, ' '))
  }

  /** The same for a text that is bytes already: from..to of `chunk`, which is not kept. */
  eventBytes(chunk: Uint8Array, from: number, to: number): boolean {
    if (this.reply.ended) return true
    if (this.#writer === undefined) this.open()
    this.lastWrite = performance.now()
    const piece = chunk.subarray(from, to)
    if (!piece.includes(CARRIAGE_RETURN) && !piece.includes(LINE_FEED))
      return this.#writer!.write(chunk, from, to)
    return this.#writer!.write(withoutLineEnds(piece), 0, piece.byteLength)
  }

  /** Ends a stream that is open. */
  end(): void {
    this.reply.end()
  }

  beat(): void {
    if (this.reply.exchange.res.writableNeedDrain) return
    this.lastWrite = performance.now()
    this.#writer!.writeUnframed(HEARTBEAT)
  }
}

function withoutLineEnds(piece: Uint8Array): Uint8Array {
  return piece.map((byte) => (byte === CARRIAGE_RETURN || byte === LINE_FEED ? SPACE : byte))
}
