import type { ChunkWriter, Frame } from './chunk-writer.ts'
import type { HttpCall } from './http-call.ts'
import { baseHeaders } from './safe-response.ts'

const EVENT: Frame = { before: 'data: ', after: '\n\n' }
const HEARTBEAT = ': keep-alive\n\n'
/**
 * Each of these ends a line of an event stream (WHATWG HTML, server-sent events). Otherwise a handler's data
 * could add fields or events.
 */
const LINE_ENDS = /[\r\n]/g
const CARRIAGE_RETURN = 0x0d
const LINE_FEED = 0x0a
const SPACE = 0x20

export const EVENT_STREAM_TYPE = 'text/event-stream; charset=utf-8'

/** Names and values of the head of a response as Server-Sent Events, alternating. */
export function eventStreamHead({ requestId, reply }: HttpCall): string[] {
  const head = baseHeaders(requestId, reply.keepsAlive(200))
  head.push('content-type', EVENT_STREAM_TYPE)
  return head
}

/**
 * A response as Server-Sent Events. The API decides when it opens (at the first item, so that an earlier
 * failure is a plain response), what an event contains, and how the stream ends. Each event is sent at once
 * as one HTTP chunk.
 */
export class EventStream implements Beating {
  lastWrite = 0
  readonly heartbeatMs: number
  readonly call: HttpCall
  /** Names and values that its API adds to the head, alternating. */
  headers: readonly string[] = []
  #writer: ChunkWriter | undefined

  /**
   * `heartbeatMs`: milliseconds of silence before a comment is sent; 0: never, for clients that accept only
   * `data:` lines.
   */
  constructor(call: HttpCall, heartbeatMs = 0) {
    this.call = call
    this.heartbeatMs = heartbeatMs
  }

  get ended(): boolean {
    return this.call.reply.ended
  }

  /**
   * Sends the head with status 200. `headers` are additional names and values, alternating.
   * @throws ServeError INVALID_OUTPUT when they are not valid
   */
  open(headers: readonly string[] = []): void {
    if (this.ended || this.#writer !== undefined) return
    const head = eventStreamHead(this.call)
    head.push(...headers, ...this.headers, ...this.call.rateHeaders())
    this.#writer = this.call.reply.open(200, head, EVENT)
    if (this.heartbeatMs > 0) beatFor(this)
  }

  /**
   * Sends one event, and opens the stream if necessary. A line end in `data` becomes a space, which is equal
   * in JSON. Returns false if the connection is full; the source will get `drained`.
   */
  event(data: string): boolean {
    if (this.ended) return true
    if (this.#writer === undefined) this.open()
    this.lastWrite = performance.now()
    return this.#writer!.writeText(data.replace(LINE_ENDS, ' '))
  }

  /** The same for a text in bytes: from..to of `chunk`, which is not kept. */
  eventBytes(chunk: Uint8Array, from: number, to: number): boolean {
    if (this.ended) return true
    if (this.#writer === undefined) this.open()
    this.lastWrite = performance.now()
    const piece = chunk.subarray(from, to)
    if (!piece.includes(CARRIAGE_RETURN) && !piece.includes(LINE_FEED))
      return this.#writer!.write(chunk, from, to)
    return this.#writer!.write(withoutLineEnds(piece), 0, piece.length)
  }

  /** Ends an open stream. */
  end(): void {
    this.call.reply.end()
  }

  beat(): void {
    if (this.call.res.writableNeedDrain) return
    this.lastWrite = performance.now()
    this.#writer!.writeUnframed(HEARTBEAT)
  }
}

function withoutLineEnds(piece: Uint8Array): Uint8Array {
  return piece.map((byte) => (byte === CARRIAGE_RETURN || byte === LINE_FEED ? SPACE : byte))
}

/** A stream that sends a heartbeat after a long silence, so that proxies do not close it. */
export interface Beating {
  /** Milliseconds of silence before a heartbeat. */
  readonly heartbeatMs: number
  /** performance.now() of the last bytes. */
  lastWrite: number
  /** The stream has ended, so it is removed. */
  readonly ended: boolean
  beat(): void
}

const LOOK_MS = 250

/** All open streams share one timer, which runs while there are any. A stream costs one entry in this set. */
const beating = new Set<Beating>()
let timer: NodeJS.Timeout | undefined

/** Sends heartbeats for a stream until it has ended. */
export function beatFor(stream: Beating): void {
  stream.lastWrite = performance.now()
  beating.add(stream)
  timer ??= setInterval(look, LOOK_MS).unref()
}

function look(): void {
  const now = performance.now()
  for (const stream of beating) {
    if (stream.ended) beating.delete(stream)
    else if (now - stream.lastWrite >= stream.heartbeatMs) stream.beat()
  }
  if (beating.size > 0) return
  clearInterval(timer)
  timer = undefined
}
