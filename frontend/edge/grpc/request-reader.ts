import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import { Duplex } from 'node:stream'
import { status as Status, type ServerInterceptingCallInterface } from '@grpc/grpc-js'
import { ServeError } from '../../../common/errors.ts'
import { NO_ROOM, type CallError, type ToCallError } from './call-error.ts'
import type { Limited, TimeLimit } from '../../jobs/time-limit.ts'
import type { Lease } from '../admission/budget.ts'
import type { CallTraffic } from './caller-check.ts'
import { closeWhenSent } from './close-when-sent.ts'
import type { Connection } from './connection.ts'
import type { Decompressor } from './decompressor.ts'
import type { LoggedCall } from './logged-call.ts'
import { BREACH_CALLS, FAREWELL_MS, FRAME_BYTES, MESSAGE_BYTES, NGHTTP2_ENHANCE_YOUR_CALM } from './limits.ts'
import { isPlainMessage, MessageBytes, PREFIX_BYTES } from './message-bytes.ts'
import { messageFault } from './message-check.ts'
import type { MessageShape } from './message-shape.ts'

/** What all readers of a listener share. */
export interface ReaderLimits {
  readonly decompressor: Decompressor
  /** For a whole request, or for each message of a stream. */
  readonly time: TimeLimit
  /** Of one message, as messageFault counts them. */
  readonly maxElements: number
}

/** What a reader has to know of the rpc that is called. */
export interface ReaderRpc {
  readonly maxMessage: number // bytes
  /** Whether the client may send any number of messages. */
  readonly isStream: boolean
  readonly request: MessageShape
  readonly toCallError: ToCallError
}

/** A message that is whole; `parts` is undefined until it is decompressed. */
interface Whole {
  parts: readonly Buffer[] | undefined
  cost: number
  /** Takes it out of the line for decompression. */
  cancel?: (() => boolean) | undefined
}

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
  return write.call(this, chunk, this[READER]!.countUnread(chunk.length, written))
}

function writeCounted(this: ReadStream, chunk: Uint8Array, written: Written): boolean {
  this[READER]!.traffic!.bytes += chunk.length
  return writeThroughReader.call(this, chunk, written)
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
  call: ServerInterceptingCallInterface | undefined
  /** Set for calls whose bytes are counted. */
  traffic: CallTraffic | undefined
  /** Set for calls that have a line in the access log. */
  logged: LoggedCall | undefined
  readonly #stream: ServerHttp2Stream
  readonly #push: ServerHttp2Stream['push']
  readonly #rpc: ReaderRpc
  readonly #limits: ReaderLimits
  readonly #connection: Connection
  readonly #budget: Lease
  readonly #encoding: unknown
  /** Bytes of the budget for the call itself. */
  readonly #callBytes: number
  /** Made for the first message that comes in pieces. */
  #bytes: MessageBytes | undefined
  /** Whole messages that wait for the decompression of the first; made for the first compressed one. */
  #queue: Whole[] | undefined
  /** Bytes of the budget that the call has. */
  #taken: number
  /** Those of them that belong to messages which grpc-js has not read from the stream. */
  #unread = 0
  /** Those of them that belong to the message which is not whole yet. */
  #begun = 0
  #clientEnded = false
  #endWaits = false
  #dismissed = false
  #over = false
  /** Bytes of its answer that count as left unread. */
  #unsent = 0

  /** `callBytes`: what the call has taken of the budget already. */
  constructor(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    rpc: ReaderRpc,
    limits: ReaderLimits,
    connection: Connection,
    callBytes: number,
  ) {
    this.#stream = stream
    this.#encoding = headers['grpc-encoding']
    this.#rpc = rpc
    this.#limits = limits
    this.#connection = connection
    this.#budget = connection.requests
    this.#callBytes = this.#taken = callBytes
    this.#push = stream.push
    const read = stream as ReadStream
    read[READER] = this
    read.push = pushToReader
    read.write = writeThroughReader as ServerHttp2Stream['write']
    stream.on('close', closeReader)
    connection.callOpened(callBytes)
    if (!rpc.isStream) limits.time.begin(this)
  }

  /** The call has a limit, which counts what is read and written. */
  limitedBy(traffic: CallTraffic | undefined): void {
    if (traffic === undefined) return
    this.traffic = traffic
    this.#stream.write = writeCounted as ServerHttp2Stream['write']
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
    if (chunk === null) return this.#takeEnd()
    this.#connection.explained.bytes += chunk.length + FRAME_BYTES
    if (this.traffic !== undefined) this.traffic.bytes += chunk.length
    return this.#take(chunk)
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
      if (stream.sentHeaders?.['grpc-status'] !== undefined) this.#dismiss()
    })
    // This is heard before grpc-js sends the trailers.
    stream.on('wantTrailers', () => this.#dismiss())
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
    if (this.#over) return
    this.#drop()
    this.call?.sendStatus({ code, details, metadata: null })
    setTimeout(() => this.#stream.close(NGHTTP2_ENHANCE_YOUR_CALM), FAREWELL_MS).unref()
    // Its bytes were read first: work that a client without a token could ask for without end.
    this.#connection.countRefusal(BREACH_CALLS)
  }

  /** The stream is gone. */
  close(): void {
    this.logged?.closed(this.#stream)
    this.#drop()
    this.#release(this.#taken)
    this.#connection.callClosed()
  }

  /** The call is over: a client that has not ended its side need not go on. */
  #dismiss(): void {
    if (this.#clientEnded || this.#dismissed) return
    this.#dismissed = true
    closeWhenSent(this.#stream)
  }

  #take(chunk: Buffer): boolean {
    if (this.#over) return true
    // grpc-js takes a whole message at once and copies it; one that it does not take would keep its chunk of
    // the socket.
    const begins = this.#bytes?.begun !== true && !this.#waits
    if (begins && this.#stream.readableFlowing === true && isPlainMessage(chunk, this.#rpc.maxMessage)) {
      const cost = chunk.length + MESSAGE_BYTES
      return !this.#charge(cost) || this.#deliverParts([chunk], cost)
    }
    if (this.#stream.writableEnded) {
      this.#dismiss()
      return false
    }
    return this.#collect(chunk)
  }

  get #waits(): boolean {
    return this.#queue !== undefined && this.#queue.length > 0
  }

  #collect(chunk: Buffer): boolean {
    const bytes = (this.#bytes ??= new MessageBytes(this.#rpc.maxMessage))
    let hasRoom = true
    for (let at = 0; at < chunk.length && !this.#over;) {
      if (!bytes.begun) {
        if (!this.#charge(MESSAGE_BYTES)) return true
        this.#begun = MESSAGE_BYTES
        if (this.#rpc.isStream) this.#limits.time.begin(this)
      }
      at = bytes.add(chunk, at)
      const more = bytes.allocated + MESSAGE_BYTES - this.#begun
      if (bytes.tooLarge) {
        const details = `Received message larger than max (${bytes.size} vs ${this.#rpc.maxMessage})`
        this.fail({ code: Status.RESOURCE_EXHAUSTED, details })
      } else if (this.#charge(more)) {
        this.#begun += more
        if (bytes.whole) hasRoom = this.#takeWhole(bytes)
      }
    }
    return hasRoom
  }

  #takeWhole(bytes: MessageBytes): boolean {
    if (this.#rpc.isStream) this.#limits.time.end(this)
    const { decompressor } = this.#limits
    const cost = this.#begun
    const encoding = bytes.compressed && decompressor.knows(this.#encoding) ? this.#encoding : undefined
    const parts = bytes.release()
    this.#begun = 0
    if (encoding === undefined && !this.#waits) return this.#deliverParts(parts, cost)
    const entry: Whole = { parts: encoding === undefined ? parts : undefined, cost }
    this.#queue ??= []
    this.#queue.push(entry)
    if (encoding !== undefined) this.#decompress(entry, parts, encoding)
    return true
  }

  #decompress(entry: Whole, parts: readonly Buffer[], encoding: string): void {
    const data = (parts.length === 1 ? parts[0]! : Buffer.concat(parts)).subarray(PREFIX_BYTES)
    entry.cancel = this.#limits.decompressor.decompress(encoding, data, (error, message) => {
      if (this.#over) return
      entry.cancel = undefined
      if (error !== undefined) {
        this.fail(error)
        return
      }
      if (!this.#charge(message.length)) return
      this.#release(entry.cost - MESSAGE_BYTES)
      const prefix = Buffer.alloc(PREFIX_BYTES)
      prefix.writeUInt32BE(message.length, 1)
      entry.cost = message.length + MESSAGE_BYTES
      entry.parts = [prefix, message]
      this.#flush(this.#queue!)
    })
  }

  /** Hands on what is ready, in order. */
  #flush(queue: Whole[]): void {
    for (let first = queue[0]; first?.parts !== undefined; first = queue[0]) {
      queue.shift()
      this.#deliverParts(first.parts, first.cost)
    }
    if (queue.length > 0 || !this.#endWaits) return
    this.#endWaits = false
    this.#end()
  }

  /** A message that is charged. False: grpc-js has enough for now. */
  #deliverParts(parts: readonly Buffer[], cost: number): boolean {
    const { maxElements } = this.#limits
    const fault = messageFault(parts, this.#rpc.request, maxElements)
    if (fault === 'elements') {
      const details = `A message must have at most ${maxElements} elements (max_request_elements)`
      this.fail({ code: Status.RESOURCE_EXHAUSTED, details })
      return true
    }
    if (fault !== undefined) {
      const message = `The message cannot be read: ${fault.field} is not valid UTF-8`
      this.fail(this.#rpc.toCallError(new ServeError('MALFORMED_BODY', message)))
      return true
    }
    for (let i = 0; i < parts.length - 1; i++) this.#push.call(this.#stream, parts[i]!)
    return this.#deliver(parts[parts.length - 1]!, cost)
  }

  /** `last` is the last part of a message that counts `cost`. */
  #deliver(last: Buffer, cost: number): boolean {
    const hasRoom = this.#push.call(this.#stream, last)
    if (!this.#rpc.isStream) return hasRoom
    if (this.#stream.readableLength === 0) this.#release(cost)
    else this.#countUnread(cost)
    return hasRoom
  }

  /** What grpc-js has read is its handler's. */
  #countUnread(cost: number): void {
    this.#unread += cost
    if (this.#unread > cost) return
    const stream = this.#stream
    const onRead = (): void => {
      if (stream.readableLength > 0) return
      stream.off('data', onRead)
      this.#release(this.#unread)
      this.#unread = 0
    }
    stream.on('data', onRead)
  }

  #takeEnd(): boolean {
    this.#clientEnded = true
    this.#limits.time.end(this)
    if (!this.#waits || this.#over) return this.#end()
    this.#endWaits = true
    return true
  }

  /** grpc-js keeps the message of any other call until here, where it calls the handler. */
  #end(): boolean {
    if (!this.#rpc.isStream) this.#release(this.#taken - this.#callBytes)
    return this.#push.call(this.#stream, null)
  }

  #charge(bytes: number): boolean {
    if (bytes === 0) return true
    if (this.#budget.take(bytes) === undefined) {
      this.#taken += bytes
      return true
    }
    this.fail(NO_ROOM)
    return false
  }

  #release(bytes: number): void {
    this.#taken -= bytes
    this.#budget.give(bytes)
  }

  /** Nothing more of the request is wanted. */
  #drop(): void {
    this.#over = true
    this.#limits.time.end(this)
    this.#bytes?.release()
    // Now, and not with the stream, which waits for its client: calls beside it would fail meanwhile.
    this.#release(this.#begun)
    this.#begun = 0
    if (this.#queue === undefined) return
    // One that is being decompressed keeps its room.
    for (const { cancel, cost } of this.#queue) if (cancel === undefined || cancel()) this.#release(cost)
    this.#queue.length = 0
  }
}
