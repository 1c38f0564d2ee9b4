import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { ServeError } from '../../../common/errors.ts'
import type { AbandonReason } from '../../jobs/job.ts'
import { answered, logAccess } from './answered.ts'
import { ChunkWriter } from './chunk-writer.ts'
import { guarded } from './guarded.ts'
import { beatFor, stopBeat, type Beating } from './heartbeat.ts'
import { addLiveReply, removeLiveReply, type LiveReply } from './live-replies.ts'
import { logFailure } from './log-failure.ts'
import { dialectHeaders } from './reply-headers.ts'
import type { RestState } from './rest-state.ts'
import { refuse } from './send-error.ts'

/** In the access log: nobody was there for an answer. */
const CLIENT_LEFT = 499

/** How long a finished answer may lie unread. */
const UNREAD_LIMIT_MS = 60_000

/**
 * Each of them ends a line of an event stream (WHATWG HTML, server-sent events): what follows would be a
 * field, or an event, of the handler's making.
 */
const LINE_ENDS = /[\r\n]/g
const CARRIAGE_RETURN = 0x0d
const LINE_FEED = 0x0a
const SPACE = 0x20

const HEARTBEAT = Buffer.from(': keep-alive\n\n')

/** Where the events come from: a job, or something that runs several. */
export interface EventSource {
  cancel(reason?: AbandonReason): void
  /** The client's connection has room again after `event` returned false. */
  drained(): void
}

/**
 * The client's side of one reply as Server-Sent Events, for every dialect that has them. The dialect decides when it opens
 * (at the first item, so that a failure before it is a plain answer with a status of its own), what an event says, and how the
 * stream ends; each event leaves at once as one HTTP chunk. After the client has left all calls do nothing.
 */
export class SseReply implements LiveReply, Beating {
  nextOnSocket: LiveReply | undefined = undefined
  lastWrite = 0
  readonly heartbeatMs: number
  readonly requestId: string
  readonly #state: RestState
  readonly #res: ServerResponse
  readonly #socket: Socket
  #source: EventSource | undefined
  #writer: ChunkWriter | undefined
  #ended = false

  /** `heartbeatMs`: after so long a silence a comment is sent; 0: never, for clients that know only `data:` lines. */
  constructor(state: RestState, res: ServerResponse, requestId: string, heartbeatMs = 0) {
    this.#state = state
    this.#res = res
    this.#socket = res.req.socket
    this.requestId = requestId
    this.heartbeatMs = heartbeatMs
  }

  /** Whether the head was sent: a failure has to be an event from now on. */
  get opened(): boolean {
    return this.#writer !== undefined
  }

  /** Whether it was ended, or the client has left. */
  get ended(): boolean {
    return this.#ended
  }

  /** Cancels the source when the client leaves. False: the client has left already. */
  follow(source: EventSource): boolean {
    this.#source = source
    return addLiveReply(this.#socket, this)
  }

  clientLeft(): void {
    this.#ended = true
    stopBeat(this)
    if (this.#writer === undefined) logAccess(this.#state, this.#res, CLIENT_LEFT)
    guarded(this.#state.log, this.#res, () => this.#source?.cancel('client left'))()
  }

  /** Sends the head of a stream: status 200. `headers` are further names and values, one after the other. */
  open(headers: readonly string[] = []): void {
    if (this.#ended || this.#writer !== undefined) return
    const keepAlive = !this.#state.draining && this.#res.shouldKeepAlive
    const head = dialectHeaders(this.requestId, keepAlive)
    head.push('content-type', 'text/event-stream; charset=utf-8', 'X-Accel-Buffering', 'no')
    head.push(...headers, ...this.#state.cors)
    this.#res.writeHead(200, head)
    answered(this.#state, this.#res, 200)
    this.#writer = new ChunkWriter(this.#res)
    const drained = (): void => this.#source?.drained()
    this.#res.on('drain', guarded(this.#state.log, this.#res, drained))
    if (this.heartbeatMs > 0) beatFor(this)
  }

  /**
   * One event; a line end in `data` becomes a space, which is the same in JSON. Opens the stream if need be.
   * False: the connection is full, the source will hear `drained`.
   */
  event(data: string): boolean {
    if (this.#ended) return true
    this.open()
    return this.#write(Buffer.from(`data: ${data.replace(LINE_ENDS, ' ')}\n\n`))
  }

  /** The same for a text that is bytes already: from..to of `chunk`, which is not kept. */
  eventBytes(chunk: Uint8Array, from: number, to: number): boolean {
    if (this.#ended) return true
    this.open()
    const event = Buffer.allocUnsafe(to - from + 8)
    event.write('data: ', 0, 'latin1')
    event.set(chunk.subarray(from, to), 6)
    withoutLineEnds(event, 6, to - from + 6)
    event.write('\n\n', to - from + 6, 'latin1')
    return this.#write(event)
  }

  /** Ends a stream that is open. */
  end(): void {
    if (this.#writer === undefined || !this.#finish()) return
    stopBeat(this)
    if (this.#state.draining) this.#res.once('finish', () => this.#socket.end())
    this.#writer.end()
    this.#limitFlush()
  }

  /** A whole answer instead of a stream; nothing may have been sent. */
  answer(status: number, contentType: string, body: Uint8Array, headers: readonly string[] = []): void {
    if (this.#writer !== undefined || !this.#finish()) return
    const keepAlive = status < 400 && !this.#state.draining && this.#res.shouldKeepAlive
    const head = dialectHeaders(this.requestId, keepAlive)
    head.push('content-type', contentType, 'content-length', String(body.byteLength))
    head.push(...headers, ...this.#state.cors)
    this.#res.writeHead(status, head)
    answered(this.#state, this.#res, status)
    this.#res.end(body)
    this.#limitFlush()
  }

  /** To be called for every failure, however it is told: unexpected ones go to the log. */
  failed(error: ServeError): void {
    logFailure(this.#state.log, this.requestId, error)
  }

  /** A failure instead of a stream, as the JSON of the dialect; nothing may have been sent. */
  refuse(status: number, json: string, headers: readonly string[] = []): void {
    if (this.#writer !== undefined || !this.#finish()) return
    const head = [...dialectHeaders(this.requestId, false), ...headers]
    refuse(this.#state, this.#res, head, status, json)
  }

  beat(): void {
    if (!this.#res.writableNeedDrain) this.#write(HEARTBEAT)
  }

  #write(event: Buffer): boolean {
    this.lastWrite = performance.now()
    return this.#writer!.write(event, 0, event.byteLength)
  }

  #finish(): boolean {
    if (this.#ended) return false
    this.#ended = true
    removeLiveReply(this.#socket, this)
    return true
  }

  #limitFlush(): void {
    if (this.#socket.writableNeedDrain) this.#socket.setTimeout(UNREAD_LIMIT_MS)
  }
}

function withoutLineEnds(event: Buffer, from: number, to: number): void {
  for (const lineEnd of [CARRIAGE_RETURN, LINE_FEED]) {
    for (let at = event.indexOf(lineEnd, from); at !== -1 && at < to; at = event.indexOf(lineEnd, at + 1)) {
      event[at] = SPACE
    }
  }
}
