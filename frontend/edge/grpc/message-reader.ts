import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import { status as Status } from '@grpc/grpc-js'
import { ServeError } from '../../../common/errors.ts'
import type { Limited, TimeLimit } from '../../jobs/time-limit.ts'
import type { Lease } from '../admission/budget.ts'
import { NO_ROOM, type CallError, type ToCallError } from './call-error.ts'
import { MESSAGE_BYTES } from './limits.ts'
import { type Decompressor, isPlainMessage, MessageBytes, PREFIX_BYTES } from './message-bytes.ts'
import { messageFault, type MessageShape } from './message-check.ts'

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

/** The call whose messages are read; its time limit expires with it. */
interface ReadCall extends Limited {
  /** A message broke a limit. */
  fail(error: CallError): void
  /** The answer is complete, and the client still sends. */
  dismiss(): void
}

/** A message that is whole; `parts` is undefined until it is decompressed. */
interface Whole {
  parts: readonly Buffer[] | undefined
  cost: number
  /** Takes it out of the line for decompression. */
  cancel?: (() => boolean) | undefined
}

/** Joins, counts, decompresses and checks the messages of one call, then hands them to grpc-js in order. */
export class MessageReader {
  /** Nothing more is wanted. */
  over = false
  readonly #call: ReadCall
  readonly #stream: ServerHttp2Stream
  readonly #push: ServerHttp2Stream['push']
  readonly #rpc: ReaderRpc
  readonly #limits: ReaderLimits
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
  #endWaits = false

  /** `callBytes`: what the call has taken of the budget already. */
  constructor(
    call: ReadCall,
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    rpc: ReaderRpc,
    limits: ReaderLimits,
    budget: Lease,
    callBytes: number,
  ) {
    this.#call = call
    this.#stream = stream
    this.#push = stream.push
    this.#encoding = headers['grpc-encoding']
    this.#rpc = rpc
    this.#limits = limits
    this.#budget = budget
    this.#callBytes = this.#taken = callBytes
  }

  /** Some bytes of the request. False: grpc-js has enough for now. */
  take(chunk: Buffer): boolean {
    if (this.over) return true
    // grpc-js takes a whole message at once and copies it; one that it does not take would keep its chunk of
    // the socket.
    const begins = this.#bytes?.begun !== true && !this.#waits
    if (begins && this.#stream.readableFlowing === true && isPlainMessage(chunk, this.#rpc.maxMessage)) {
      const cost = chunk.length + MESSAGE_BYTES
      return !this.#charge(cost) || this.#deliverParts([chunk], cost)
    }
    if (this.#stream.writableEnded) {
      this.#call.dismiss()
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
    for (let at = 0; at < chunk.length && !this.over;) {
      if (!bytes.begun) {
        if (!this.#charge(MESSAGE_BYTES)) return true
        this.#begun = MESSAGE_BYTES
        if (this.#rpc.isStream) this.#limits.time.begin(this.#call)
      }
      at = bytes.add(chunk, at)
      const more = bytes.allocated + MESSAGE_BYTES - this.#begun
      if (bytes.tooLarge) {
        const details = `Received message larger than max (${bytes.size} vs ${this.#rpc.maxMessage})`
        this.#call.fail({ code: Status.RESOURCE_EXHAUSTED, details })
      } else if (this.#charge(more)) {
        this.#begun += more
        if (bytes.whole) hasRoom = this.#takeWhole(bytes)
      }
    }
    return hasRoom
  }

  #takeWhole(bytes: MessageBytes): boolean {
    if (this.#rpc.isStream) this.#limits.time.end(this.#call)
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
      if (this.over) return
      entry.cancel = undefined
      if (error !== undefined) {
        this.#call.fail(error)
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
      this.#call.fail({ code: Status.RESOURCE_EXHAUSTED, details })
      return true
    }
    if (fault !== undefined) {
      const message = `The message cannot be read: ${fault.field} is not valid UTF-8`
      this.#call.fail(this.#rpc.toCallError(new ServeError('MALFORMED_BODY', message)))
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

  /** The client has sent everything. */
  takeEnd(): boolean {
    this.#limits.time.end(this.#call)
    if (!this.#waits || this.over) return this.#end()
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
    this.#call.fail(NO_ROOM)
    return false
  }

  #release(bytes: number): void {
    this.#taken -= bytes
    this.#budget.give(bytes)
  }

  /** The stream is gone. */
  close(): void {
    this.drop()
    this.#release(this.#taken)
  }

  /** Nothing more of the request is wanted. */
  drop(): void {
    this.over = true
    this.#limits.time.end(this.#call)
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
