import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { ServeError } from '../../protocol/errors.ts'
import type { Job } from '../models/job.ts'
import type { ReplyHead, ReplySink } from '../models/reply-sink.ts'
import { isFinalStatus } from './errors.ts'
import { addLiveReply, removeLiveReply, type LiveReply } from './live-replies.ts'
import { addCors, addHandlerHeaders, commonHeaders } from './reply-headers.ts'
import type { RestState } from './rest-state.ts'
import { sendError } from './send-error.ts'

/** From this many unsent bytes on, small items are copied out of the large socket chunks that they are views of. */
const COPY_FROM_UNSENT_BYTES = 2_048
const LARGE_CHUNK_BYTES = 16_384

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
  #opened = false
  #flushed = false

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
    this.#job?.cancel('client left')
  }

  whole(head: ReplyHead, body: Uint8Array): void {
    if (this.#ended) return
    const headers = this.#headers(head)
    if (head.status !== 204 && head.status !== 304) {
      headers.push('content-length', String(body.byteLength))
    }
    if (!this.#writeHead(head, headers)) return
    this.#end()
    this.#res.end(body)
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
    this.#opened = true
    this.#res.on('drain', () => this.#job?.drained())
  }

  write(item: Uint8Array): boolean {
    if (this.#ended) return true
    if (item.byteLength === 0) {
      if (!this.#flushed) this.#res.flushHeaders()
      this.#flushed = true
      return !this.#res.writableNeedDrain
    }
    this.#flushed = true
    return this.#res.write(this.#unpinned(item))
  }

  close(): void {
    if (this.#ended) return
    this.#end()
    if (this.#state.draining) this.#res.once('finish', () => this.#socket.end())
    this.#res.end()
    this.#limitFlush()
  }

  fail(error: ServeError): void {
    if (this.#ended) return
    this.#end()
    if (this.#opened) this.#break()
    else sendError(this.#state, this.#res, this.requestId, error)
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
    this.#state.metrics.response(head.status)
    return true
  }

  /** What waits for a slow reader must not keep a whole socket chunk of the worker alive. */
  #unpinned(item: Uint8Array): Uint8Array {
    const chunk = item.buffer.byteLength
    if (chunk < LARGE_CHUNK_BYTES || item.byteLength * 4 > chunk) return item
    return this.#socket.writableLength < COPY_FROM_UNSENT_BYTES ? item : Buffer.from(item)
  }

  /** Ends the connection before the zero chunk, after the items that were sent, so that nobody takes a part for the whole. */
  #break(): void {
    const socket = this.#socket
    if (this.#res.socket === null) {
      // Pipelined: earlier responses of this connection come first.
      this.#res.once('socket', () => process.nextTick(() => this.#break()))
    } else if (this.#res.chunkedEncoding) {
      socket.setTimeout(BREAK_GRACE_MS)
      socket.destroySoon()
    } else {
      socket.resetAndDestroy()
    }
  }

  #limitFlush(): void {
    if (this.#socket.writableNeedDrain) this.#socket.setTimeout(UNREAD_LIMIT_MS)
  }
}
