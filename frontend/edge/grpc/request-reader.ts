import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import { Duplex } from 'node:stream'
import { status as Status, type ServerInterceptingCallInterface } from '@grpc/grpc-js'
import type { Limited, TimeLimit } from '../../jobs/time-limit.ts'
import type { CallError } from './call-error.ts'
import type { GrpcCall } from './call.ts'
import type { Connection } from './connection.ts'
import { BREACH_CALLS, FAREWELL_MS, FRAME_BYTES, NGHTTP2_ENHANCE_YOUR_CALM } from './limits.ts'
import { MessageReader, type ReaderLimits, type ReaderRpc } from './message-reader.ts'

/** So many bytes of an answer are counted together: few, since a client may have many streams open. */
const COUNTED_BYTES = 8_192

const READER = Symbol('reader')

type ReadStream = ServerHttp2Stream & { [READER]?: RequestReader }

/**
 * Node hands what it reads to `push`, as to that of every Readable. One function for all streams: with a
 * closure for each, V8 kept finished calls until the next full collection, and the collector took a third of
 * the time of a unary call.
 */
function pushToReader(this: ReadStream, chunk: Buffer | null): boolean {
  return this[READER]!.receive(chunk)
}

/** What grpc-js gives with each message. */
type Written = (error?: Error | null) => void
const write = Duplex.prototype.write as (this: Duplex, chunk: Uint8Array, written: Written) => boolean

/** The same for what grpc-js writes. */
function writeThroughReader(this: ReadStream, chunk: Uint8Array, written: Written): boolean {
  const reader = this[READER]!
  reader.call.bytes += chunk.length
  return write.call(this, chunk, reader.countUnread(chunk.length, written))
}

/** One function for all streams, too. */
function closeReader(this: ReadStream): void {
  this[READER]!.close()
}

/**
 * Stands between Node's HTTP/2 and grpc-js for the messages of one call, because grpc-js keeps each DATA
 * frame of an unfinished message with the socket's chunk around it. A frame that is a whole message passes as
 * it is; anything else is collected, counted, decompressed.
 */
export class RequestReader implements Limited {
  /** Set when grpc-js has its call for the stream. */
  surface: ServerInterceptingCallInterface | undefined
  readonly call: GrpcCall
  readonly #stream: ServerHttp2Stream
  readonly #rpc: ReaderRpc
  readonly #connection: Connection
  readonly #messages: MessageReader
  #clientEnded = false
  #dismissed = false
  /** Bytes of its answer that count as left unread. */
  #unsent = 0

  /** `callBytes`: what the call has taken of the budget already. */
  constructor(
    call: GrpcCall,
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    rpc: ReaderRpc,
    limits: ReaderLimits,
    connection: Connection,
    callBytes: number,
  ) {
    this.call = call
    this.#stream = stream
    this.#rpc = rpc
    this.#connection = connection
    this.#messages = new MessageReader(this, stream, headers, rpc, limits, connection.requests, callBytes)
    const read = stream as ReadStream
    read[READER] = this
    read.push = pushToReader
    read.write = writeThroughReader as ServerHttp2Stream['write']
    stream.on('close', closeReader)
    connection.callOpened(callBytes)
    if (!rpc.isStream) limits.time.begin(this)
  }

  /**
   * Counts what waits for the client once it is enough. Not when the stream says that it is full: how much it
   * holds until then differs between versions of Node.
   * @returns what to give to Node with these bytes
   */
  countUnread(bytes: number, written: Written): Written {
    const more = this.#stream.writableLength + bytes - this.#unsent
    if (more < COUNTED_BYTES) return written
    this.#unsent += more
    this.#connection.leavesUnread(more)
    // Node calls back for each write, also of a stream that breaks.
    return (error) => {
      this.#unsent -= more
      this.#connection.answers.give(more)
      written(error)
    }
  }

  /** What Node has read; null at the end. False: grpc-js has enough for now. */
  receive(chunk: Buffer | null): boolean {
    if (chunk === null) {
      this.#clientEnded = true
      return this.#messages.takeEnd()
    }
    this.#connection.explained.bytes += chunk.length + FRAME_BYTES
    this.call.bytes += chunk.length
    return this.#messages.take(chunk)
  }

  /**
   * To be called when grpc-js has seen the stream: its handler of a stream may answer before the client has
   * ended.
   */
  attach(): void {
    if (!this.#rpc.isStream) return
    const stream = this.#stream
    // The client need not go on with its request (RFC 9113, 8.1): after an answer without messages, and after
    // one with some.
    stream.on('finish', () => {
      if (stream.sentHeaders?.['grpc-status'] !== undefined) this.dismiss()
    })
    // This is heard before grpc-js sends the trailers.
    stream.on('wantTrailers', () => this.dismiss())
  }

  /** The message has been under way for too long. A client whose stream is paused may be held up by us. */
  expired(limit: TimeLimit): void {
    if (this.#rpc.isStream && this.#stream.isPaused()) {
      limit.begin(this)
      return
    }
    const details = `The request was not complete after ${limit.ms / 1_000} s`
    this.fail({ code: Status.DEADLINE_EXCEEDED, details })
  }

  /** Ends the call, whatever grpc-js and the handler are at. */
  fail({ code, details }: CallError): void {
    if (this.#messages.over) return
    this.#messages.drop()
    this.surface?.sendStatus({ code, details, metadata: null })
    setTimeout(() => this.#stream.close(NGHTTP2_ENHANCE_YOUR_CALM), FAREWELL_MS).unref()
    // Its bytes were read first: work that a client without a token could ask for without end.
    this.#connection.countRefusal(BREACH_CALLS)
  }

  /** The stream is gone. */
  close(): void {
    this.call.closed()
    this.#messages.close()
    this.#connection.callClosed()
  }

  /** The call is over: a client that has not ended its side need not go on. */
  dismiss(): void {
    if (this.#clientEnded || this.#dismissed) return
    this.#dismissed = true
    closeWhenSent(this.#stream)
  }
}

/**
 * Closes a stream whose answer is complete while its client still sends (RFC 9113, 8.1). Not at once: nghttp2
 * drops what a closed stream has not sent, the status included, and a client of grpc-js that gets the reset
 * with the status in one piece reports the reset.
 */
export function closeWhenSent(stream: ServerHttp2Stream): void {
  const timer = setTimeout(() => {
    // The status ends our side of the stream. Before it is written, closing would drop it.
    if (stream.state.localClose !== 1 && !stream.closed) {
      closeWhenSent(stream)
      return
    }
    stream.close()
    // Node keeps a stream that is paused and has something to read.
    stream.resume()
  }, FAREWELL_MS)
  timer.unref()
  stream.once('close', () => clearTimeout(timer))
}
