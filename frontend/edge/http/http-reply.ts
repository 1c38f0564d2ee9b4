import { STATUS_CODES, type ServerResponse } from 'node:http'
import { TLSSocket } from 'node:tls'
import { ServeError } from '../../../common/errors.ts'
import type { AbandonReason } from '../../jobs/job.ts'
import { ChunkWriter, type Frame, latin1 } from './chunk-writer.ts'
import type { LiveReply } from './connection.ts'
import type { Exchange } from './exchange.ts'
import { addCors } from './reply-headers.ts'

/** In the access log: nobody was there for an answer. No status of HTTP; nginx writes the same. */
const CLIENT_LEFT = 499

const SMALL_BODY_BYTES = 4_096

/** How long a broken stream may take to flush what was sent before it broke. */
const BREAK_GRACE_MS = 5_000

/** How long a finished answer may lie unread. */
const UNREAD_LIMIT_MS = 60_000

/** How long a refused upload is read and thrown away, so that its client gets to see the answer. */
const LINGER_MS = 2_000

/** Where an answer comes from: a job, or something that runs several. */
export interface ReplySource {
  cancel(reason?: AbandonReason): void
  /** The client's connection has room again after a write returned false. */
  drained(): void
}

/** A failure as a dialect tells it, instead of an answer. */
export interface Refusal {
  readonly status: number
  /** The dialect's own, flat: name, value, name, value. */
  readonly headers: readonly string[]
  /** Undefined: the head alone, which no metric counts. */
  readonly json: string | undefined
}

/**
 * The client's side of one exchange, whatever the dialect: it follows the client, and ends exactly once. A
 * whole answer or a refusal is one call; a stream is `open`, writes to the writer that it returns, and `end`
 * or `break`. The head is held back until then, so that a failure before the first item is an answer with a
 * status of its own.
 */
export class HttpReply implements LiveReply {
  nextOnSocket: LiveReply | undefined = undefined
  readonly exchange: Exchange
  #source: ReplySource | undefined
  #writer: ChunkWriter | undefined
  #ended = false

  constructor(exchange: Exchange) {
    this.exchange = exchange
  }

  /** Whether the head of a stream was sent: a failure has to show in the stream from now on. */
  get opened(): boolean {
    return this.#writer !== undefined
  }

  /** Whether it was ended, or the client has left: every call does nothing from now on. */
  get ended(): boolean {
    return this.#ended
  }

  /** Whether the connection stays open after an answer with this status. */
  keepsAlive(status: number): boolean {
    const { state, res } = this.exchange
    return status < 400 && !state.draining && res.shouldKeepAlive
  }

  /** Cancels the source when the client leaves. False: the client has left already. */
  follow(source: ReplySource): boolean {
    this.#source = source
    return this.exchange.connection.add(this)
  }

  clientLeft(): void {
    this.#ended = true
    if (this.#writer === undefined) this.exchange.logAccess(CLIENT_LEFT)
    this.exchange.guarded(() => this.#source?.cancel('client left'))()
  }

  /**
   * A whole answer. `reason` stands for the usual phrase of the status.
   * @throws ServeError INVALID_OUTPUT when the head cannot be sent; nothing was sent then
   */
  answer(status: number, headers: string[], body: Uint8Array, reason?: string): void {
    if (this.#ended || this.#writer !== undefined) return
    if (status !== 204 && status !== 304) headers.push('content-length', String(body.byteLength))
    this.#writeHead(status, headers, reason)
    this.#finish()
    const { res } = this.exchange
    // A short body leaves together with the head as one string: one plain write instead of a gathered one.
    if (body.byteLength <= SMALL_BODY_BYTES) res.end(latin1(body), 'latin1')
    else res.end(body)
    this.#limitFlush()
  }

  /**
   * Sends the head of a stream and returns what takes its items, each of which leaves at once as one HTTP
   * chunk, in `frame`. Not to be called when it has ended. @throws ServeError INVALID_OUTPUT when the head
   * cannot be sent; nothing was sent then
   */
  open(status: number, headers: string[], frame?: Frame, reason?: string): ChunkWriter {
    const { exchange } = this
    headers.push('X-Accel-Buffering', 'no')
    this.#writeHead(status, headers, reason)
    this.#writer = new ChunkWriter(exchange.res, frame)
    const drained = (): void => this.#source?.drained()
    exchange.res.on('drain', exchange.guarded(drained))
    return this.#writer
  }

  /** Ends a stream that is open. */
  end(): void {
    if (this.#writer === undefined || !this.#finish()) return
    const { res, req, state } = this.exchange
    if (state.draining) res.once('finish', () => req.socket.end())
    this.#writer.end()
    this.#limitFlush()
  }

  /**
   * Ends a stream before its end, after the items that were sent, so that nobody takes a part for the whole.
   */
  break(error: ServeError): void {
    if (this.#writer === undefined || !this.#finish()) return
    this.exchange.logFailure(error)
    this.#writer.flush()
    this.#cut(this.#writer.framed)
  }

  /** A failure instead of an answer; the connection is closed. Nothing may have been sent. */
  refuse(error: ServeError, { status, headers, json }: Refusal): void {
    if (this.#writer !== undefined || !this.#finish()) return
    const { exchange } = this
    exchange.logFailure(error)
    const body = json === undefined ? undefined : Buffer.from(json)
    const head = body === undefined ? ['content-length', '0', ...headers] : [...headers]
    if (body === undefined) {
      exchange.logAccess(status)
    } else {
      exchange.answered(status)
      head.push('content-type', 'application/json', 'content-length', String(body.byteLength))
      addCors(head, exchange.state.cors)
    }
    // A reason that a handler set and Node refused would still stand without one of ours.
    exchange.res.writeHead(status, STATUS_CODES[status] ?? '', head)
    endAfterUpload(exchange.res, body)
  }

  /** The answer cannot be sent: its source need not go on. */
  cancelSource(): void {
    this.#source?.cancel()
  }

  #writeHead(status: number, headers: string[], reason: string | undefined): void {
    const { res, state } = this.exchange
    if (state.cors.length > 0) addCors(headers, state.cors)
    try {
      if (!isFinalStatus(status)) throw new RangeError(`Status ${status}`)
      if (reason === undefined) res.writeHead(status, headers)
      else res.writeHead(status, reason, headers)
    } catch (cause) {
      const message = 'The handler set an invalid response status or header'
      throw new ServeError('INVALID_OUTPUT', message, { cause })
    }
    this.exchange.answered(status)
  }

  #finish(): boolean {
    if (this.#ended) return false
    this.#ended = true
    this.exchange.connection.remove(this)
    return true
  }

  #cut(framed: boolean): void {
    const { res, req } = this.exchange
    const { socket } = req
    if (res.socket === null) {
      // Pipelined: earlier responses of this connection come first.
      res.once('socket', () => process.nextTick(() => this.#cut(framed)))
    } else if (framed) {
      socket.setTimeout(BREAK_GRACE_MS)
      socket.destroySoon()
    } else if (socket instanceof TLSSocket || socket.remoteAddress === undefined) {
      // Neither can be reset. TLS clients miss the closing alert; a Unix socket has no such sign for a body
      // without framing.
      socket.destroy()
    } else {
      socket.resetAndDestroy()
    }
  }

  #limitFlush(): void {
    const { socket } = this.exchange.req
    if (socket.writableNeedDrain) socket.setTimeout(UNREAD_LIMIT_MS)
  }
}

/** Whether HTTP can end a response with this status; 1xx would not end it. */
export function isFinalStatus(status: number): boolean {
  return Number.isInteger(status) && status >= 200 && status <= 599
}

/**
 * Closing a socket with unread input resets it, and many clients then never read the answer. So the answer
 * goes out at once, and the socket is closed when the upload has ended, or after a short time.
 */
function endAfterUpload(res: ServerResponse, body: Buffer | undefined): void {
  const req = res.req
  if (req.complete || req.destroyed) {
    res.end(body)
    return
  }
  if (body === undefined) res.flushHeaders()
  else res.write(body)
  const finish = (): void => {
    clearTimeout(timer)
    res.end()
  }
  const timer = setTimeout(finish, LINGER_MS)
  req.once('end', finish).once('close', finish).resume()
}
