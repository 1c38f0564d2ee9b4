import { STATUS_CODES } from 'node:http'
import { TLSSocket } from 'node:tls'
import { ServeError } from '../../../common/errors.ts'
import type { AbandonReason } from '../../jobs/scheduler.ts'
import { ChunkWriter, endWith, type Frame, latin1 } from './chunk-writer.ts'
import { type LiveReply, UNREAD_LIMIT_MS } from './connection.ts'
import type { HttpCall } from './http-call.ts'
import { LINGER_MS, skipBody } from './server-request.ts'

/**
 * Status in the access log for a client that disconnected before a response; nginx logs the same. Not an HTTP
 * status.
 */
const CLIENT_LEFT = 499

const SMALL_BODY_BYTES = 4_096

/** Milliseconds that a broken stream has to flush what was sent before. */
const BREAK_GRACE_MS = 5_000

/** Bytes; less of an answer that waits is not counted. */
const COUNTED_BYTES = 65_536

/** The source of a response: a job, or an object that runs several. */
export interface ReplySource {
  cancel(reason?: AbandonReason): void
  /** The client's connection has room again after a write returned false. */
  drained(): void
}

/** A failure in the format of an API, instead of a response. */
export interface Refusal {
  readonly status: number
  /** Default: the standard phrase of the status. */
  readonly reason?: string
  /** The API's own headers, flat: name, value, name, value. */
  readonly headers: readonly string[]
  readonly json: string
}

/**
 * The client's side of one call, for every API. It watches the client and ends exactly once. A unary
 * response or a refusal is one call. A stream is `open`, writes to the returned writer, then `end` or
 * `break`. The head waits until the first item, so that an earlier failure can have its own status.
 */
export class HttpReply implements LiveReply {
  readonly call: HttpCall
  #source: ReplySource | undefined
  #writer: ChunkWriter | undefined
  #ended = false

  constructor(call: HttpCall) {
    this.call = call
  }

  /** Whether the head of a stream was sent, so that a failure can only show within the stream. */
  get opened(): boolean {
    return this.#writer !== undefined
  }

  /** Whether it has ended or the client has disconnected; all calls do nothing then. */
  get ended(): boolean {
    return this.#ended
  }

  /** Whether the connection stays open after a response with this status. */
  keepsAlive(status: number): boolean {
    const { state, res } = this.call
    return status < 400 && !state.draining && res.shouldKeepAlive
  }

  /** Cancels the source when the client disconnects. Returns false if it already has. */
  follow(source: ReplySource): boolean {
    this.#source = source
    return this.call.connection.add(this)
  }

  clientLeft(): void {
    this.#ended = true
    if (this.#writer === undefined) this.call.logAccess(CLIENT_LEFT)
    this.call.guarded(() => this.#source?.cancel('client left'))()
  }

  /**
   * Sends the unary response. `reason` replaces the standard phrase of the status.
   * @throws ServeError INVALID_OUTPUT when the head is not valid; nothing was sent then
   */
  answer(status: number, headers: string[], body: Uint8Array, reason?: string): void {
    if (this.#ended || this.#writer !== undefined) return
    if (status !== 204 && status !== 304) headers.push('content-length', String(body.length))
    this.#writeHead(status, headers, reason)
    this.#finish()
    const { res } = this.call
    // A short body is joined with the head into one string, for one plain write.
    if (body.length <= SMALL_BODY_BYTES) endWith(res, latin1(body))
    else res.end(body)
    this.#limitFlush()
  }

  /**
   * Sends the head of a stream and returns the writer of its items. Each item is sent at once as one HTTP
   * chunk, in `frame`. Must not be called after the end. @throws ServeError INVALID_OUTPUT when the head is
   * not valid; nothing was sent then
   */
  open(status: number, headers: string[], frame?: Frame, reason?: string): ChunkWriter {
    const { call } = this
    headers.push('X-Accel-Buffering', 'no')
    this.#writeHead(status, headers, reason)
    this.#writer = new ChunkWriter(call.res, () => this.#full(), frame)
    const drained = (): void => this.#source?.drained()
    call.res.on('drain', call.guarded(drained))
    return this.#writer
  }

  /** Ends an open stream. */
  end(): void {
    if (this.#writer === undefined || !this.#finish()) return
    const { res, req, state } = this.call
    if (state.draining) res.once('finish', () => req.socket.end())
    this.#writer.end()
    this.#limitFlush()
  }

  /** Breaks a stream after the items that were sent, so that the client can tell it is incomplete. */
  break(error: ServeError): void {
    if (this.#writer === undefined || !this.#finish()) return
    this.call.logFailure(error)
    this.#writer.flush()
    this.#cut(this.#writer.framed)
  }

  /** Sends a failure instead of a response, and closes the connection. Nothing may have been sent before. */
  refuse(error: ServeError, { status, reason, headers, json }: Refusal): void {
    if (this.#writer !== undefined || !this.#finish()) return
    const { call } = this
    call.logFailure(error)
    const body = Buffer.from(json)
    const head = [...headers]
    const meant = call.modelMeant(error)
    if (meant !== undefined) head.push('x-hint', `did you mean the model ${meant}?`)
    call.answered(status)
    head.push('content-type', 'application/json', 'content-length', String(body.length))
    call.state.cors?.addTo(head, call.req)
    // Otherwise a reason phrase of the handler that Node refused would stay set.
    call.res.writeHead(status, reason ?? STATUS_CODES[status] ?? '', head)
    endAfterUpload(call, body)
  }

  #writeHead(status: number, headers: string[], reason: string | undefined): void {
    const { res, req, state } = this.call
    state.cors?.addTo(headers, req)
    try {
      if (!isFinalStatus(status)) throw new RangeError(`Status ${status}`)
      if (reason === undefined) res.writeHead(status, headers)
      else res.writeHead(status, reason, headers)
    } catch (cause) {
      const message = 'The handler set a response status or header that is not valid in HTTP'
      throw new ServeError('INVALID_OUTPUT', message, { cause })
    }
    this.call.answered(status)
  }

  #finish(): boolean {
    if (this.#ended) return false
    this.#ended = true
    this.call.connection.remove(this)
    return true
  }

  #cut(framed: boolean): void {
    const { socket } = this.call.req
    if (framed) {
      socket.setTimeout(BREAK_GRACE_MS)
      socket.destroySoon()
    } else if (socket instanceof TLSSocket || socket.remoteAddress === undefined) {
      // TLS and Unix sockets cannot be reset. TLS clients notice the missing close alert; over a Unix socket
      // a body without framing has no such sign.
      socket.destroy()
    } else {
      socket.resetAndDestroy()
    }
  }

  #limitFlush(): void {
    const { req, state, connection } = this.call
    if (!req.socket.writableNeedDrain) return
    req.socket.setTimeout(UNREAD_LIMIT_MS)
    connection.leavesUnread(state.admission)
  }

  /** A stream waits for its client. */
  #full(): void {
    const { res, state, connection } = this.call
    if (res.writableLength >= COUNTED_BYTES) connection.leavesUnread(state.admission)
  }
}

/** Whether a response can have this status; 1xx responses are not final. */
export function isFinalStatus(status: number): boolean {
  return Number.isInteger(status) && status >= 200 && status <= 599
}

/**
 * Closing a socket with unread input resets it, and many clients then never read the response. So the
 * response is sent at once, and the socket is closed when the upload has ended, or after a short time.
 */
function endAfterUpload({ req, res }: HttpCall, body: Buffer): void {
  if (req.complete || req.destroyed) {
    res.end(body)
    return
  }
  res.write(body)
  const finish = (): void => {
    clearTimeout(timer)
    res.end()
    // Node would read the rest of the body.
    if (!req.complete) req.socket.destroySoon()
  }
  const timer = setTimeout(finish, LINGER_MS)
  req.once('end', finish).once('close', finish)
  skipBody(req)
}
