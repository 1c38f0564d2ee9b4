import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { ServeError } from '../../../common/errors.ts'
import type { Job } from '../../jobs/job.ts'
import type { ReplyHead, ReplySink } from '../../jobs/reply-sink.ts'
import { answered, logAccess } from '../../edge/http/answered.ts'
import { isFinalStatus } from './rest-errors.ts'
import { ChunkWriter, latin1 } from '../../edge/http/chunk-writer.ts'
import { guarded } from '../../edge/http/guarded.ts'
import { addLiveReply, removeLiveReply, type LiveReply } from '../../edge/http/live-replies.ts'
import { addCors, addHandlerHeaders, commonHeaders } from '../../edge/http/reply-headers.ts'
import { logFailure } from '../../edge/http/log-failure.ts'
import type { RestState } from '../../edge/http/rest-state.ts'
import { sendError } from '../../edge/http/send-error.ts'

/** In the access log: nobody was there for an answer. No status of HTTP; nginx writes the same. */
const CLIENT_LEFT = 499

const SMALL_BODY_BYTES = 4_096

/** How long a broken stream may take to flush what was sent before it broke. */
const BREAK_GRACE_MS = 5_000

/** How long a finished answer may lie unread. */
const UNREAD_LIMIT_MS = 60_000

/** The reply to one job as HTTP/1.1: a plain response, or one chunk per item. */
export class HttpReplySink implements ReplySink, LiveReply {
  nextOnSocket: LiveReply | undefined = undefined
  readonly requestId: string
  readonly #state: RestState
  readonly #res: ServerResponse
  readonly #socket: Socket
  #job: Job | undefined
  #ended = false
  /** Present once a stream has begun. */
  #writer: ChunkWriter | undefined = undefined

  constructor(state: RestState, res: ServerResponse, requestId: string) {
    this.#state = state
    this.#res = res
    this.#socket = res.req.socket
    this.requestId = requestId
  }

  /** Ties the job to the connection: it is cancelled when the client leaves. False: the client has left already. */
  follow(job: Job): boolean {
    this.#job = job
    return addLiveReply(this.#socket, this)
  }

  clientLeft(): void {
    this.#ended = true
    if (this.#writer === undefined) logAccess(this.#state, this.#res, CLIENT_LEFT)
    guarded(this.#state.log, this.#res, () => this.#job?.cancel('client left'))()
  }

  whole(head: ReplyHead, body: Uint8Array): void {
    if (this.#ended) return
    const headers = this.#headers(head)
    if (head.status !== 204 && head.status !== 304) {
      headers.push('content-length', String(body.byteLength))
    }
    if (!this.#writeHead(head, headers)) return
    this.#end()
    // A short body leaves together with the head as one string: one plain write instead of a gathered one.
    if (body.byteLength <= SMALL_BODY_BYTES) this.#res.end(latin1(body), 'latin1')
    else this.#res.end(body)
    this.#limitFlush()
  }

  open(head: ReplyHead): void {
    if (this.#ended) return
    const headers = this.#headers(head)
    headers.push('ts_stream_next', 'true', 'X-Accel-Buffering', 'no')
    if (!this.#writeHead(head, headers)) {
      this.#job?.cancel()
      return
    }
    this.#writer = new ChunkWriter(this.#res)
    const drained = (): void => this.#job?.drained()
    this.#res.on('drain', guarded(this.#state.log, this.#res, drained))
  }

  write(chunk: Uint8Array, from: number, to: number): boolean {
    return this.#ended || this.#writer!.write(chunk, from, to)
  }

  close(): void {
    if (this.#ended) return
    this.#end()
    if (this.#state.draining) this.#res.once('finish', () => this.#socket.end())
    this.#writer!.end()
    this.#limitFlush()
  }

  fail(error: ServeError): void {
    if (this.#ended) return
    this.#end()
    if (this.#writer === undefined) {
      sendError(this.#state, this.#res, this.requestId, error)
      return
    }
    logFailure(this.#state.log, this.requestId, error)
    this.#writer.flush()
    this.#break(this.#writer.framed)
  }

  #end(): void {
    this.#ended = true
    removeLiveReply(this.#socket, this)
  }

  #headers(head: ReplyHead): string[] {
    const keepAlive = head.status < 400 && !this.#state.draining && this.#res.shouldKeepAlive
    const headers = commonHeaders(this.requestId, keepAlive)
    addHandlerHeaders(headers, head)
    if (this.#state.cors.length > 0) addCors(headers, this.#state.cors, head)
    return headers
  }

  /** False: the handler's head cannot be sent, the client has got an error instead. */
  #writeHead(head: ReplyHead, headers: string[]): boolean {
    try {
      if (!isFinalStatus(head.status)) throw new RangeError(`Status ${head.status}`)
      this.#res.writeHead(head.status, head.reason ?? '', headers)
    } catch (cause) {
      this.fail(
        new ServeError('INVALID_OUTPUT', 'The handler set an invalid response status or header', { cause }),
      )
      return false
    }
    answered(this.#state, this.#res, head.status)
    return true
  }

  /** Ends the connection before the zero chunk, after the items that were sent, so that nobody takes a part for the whole. */
  #break(framed: boolean): void {
    const socket = this.#socket
    if (this.#res.socket === null) {
      // Pipelined: earlier responses of this connection come first.
      this.#res.once('socket', () => process.nextTick(() => this.#break(framed)))
    } else if (framed) {
      socket.setTimeout(BREAK_GRACE_MS)
      socket.destroySoon()
    } else if (socket instanceof TLSSocket || socket.remoteAddress === undefined) {
      // Neither can be reset. TLS clients miss the closing alert; a Unix socket has no such sign for a body without framing.
      socket.destroy()
    } else {
      socket.resetAndDestroy()
    }
  }

  #limitFlush(): void {
    if (this.#socket.writableNeedDrain) this.#socket.setTimeout(UNREAD_LIMIT_MS)
  }
}
