import type { ServerResponse } from 'node:http'
import { SOCKET_READ_BYTES } from '../../../common/byte-flow.ts'

/** Bytes; items up to this size are joined with others of the same turn into one string. */
const SMALL_ITEM_BYTES = 1_024

const CRLF = '\r\n'
const LAST_CHUNK = '0\r\n\r\n'

/** ASCII text around every item. */
export interface Frame {
  readonly before: string
  readonly after: string
}

const NO_FRAME: Frame = { before: '', after: '' }
const MAX_FRAME_BYTES = 16

/** Size lines of small chunks, made once. */
const SIZE_LINES = Array.from(
  { length: SMALL_ITEM_BYTES + MAX_FRAME_BYTES + 1 },
  (_, size) => size.toString(16) + CRLF,
)

/**
 * Writes each item as exactly one HTTP chunk. Node's own framing needs four writes per chunk, most of a
 * chunk's cost, and joins the chunks of a corked response. Here all small items of one turn of the event loop
 * leave as one string, which also releases the worker's socket chunk that they were views of. An HTTP/1.0
 * client gets the bare bytes, and the end of the connection.
 */
export class ChunkWriter {
  readonly #res: ServerResponse
  readonly #onFull: () => void
  readonly #framed: boolean
  readonly #before: string
  readonly #after: string
  readonly #frameBytes: number
  #pending = ''
  /** Bytes that the connection can take before it is full, when this turn's first item came. */
  #room = 0
  #scheduled = false
  #headFlushed = false

  /**
   * Requires that only the head was written.
   * @param onFull called when the connection is full
   */
  constructor(res: ServerResponse, onFull: () => void, { before, after }: Frame = NO_FRAME) {
    this.#res = res
    this.#onFull = onFull
    this.#before = before
    this.#after = after
    this.#frameBytes = before.length + after.length
    // These Node.js properties are not public: whether Node would frame the body, and the switch for it.
    // tests/edge/http/node-internals.test.ts checks them.
    this.#framed = res.chunkedEncoding
    res.chunkedEncoding = false
    joinHead(res)
  }

  /** Whether chunks tell the client where the body ends. */
  get framed(): boolean {
    return this.#framed
  }

  /**
   * Returns false if the connection is full: wait for the response's `drain`. An empty item only sends the
   * head.
   */
  write(chunk: Uint8Array, from: number, to: number): boolean {
    const size = to - from
    if (size > SMALL_ITEM_BYTES) return this.#writeLarge(chunk.subarray(from, to), size)
    const framed = size + this.#frameBytes
    return this.#add(framed === 0 ? '' : this.#before + textAt(chunk, from, to) + this.#after, framed)
  }

  /** The same for an item that is a string. */
  writeText(text: string): boolean {
    const size = Buffer.byteLength(text)
    const isPlain = size === text.length && size <= SMALL_ITEM_BYTES
    if (!isPlain) return this.write(Buffer.from(text), 0, size)
    return this.#add(this.#before + text + this.#after, size + this.#frameBytes)
  }

  /** Sends a short ASCII text as a chunk of its own, without the frame. */
  writeUnframed(text: string): boolean {
    return this.#add(text, text.length)
  }

  /** `text` has one character per byte. */
  #add(text: string, size: number): boolean {
    if (size > 0) this.#pending += this.#framed ? SIZE_LINES[size]! + text + CRLF : text
    if (!this.#scheduled) {
      this.#scheduled = true
      this.#room = this.#res.writableHighWaterMark - this.#res.writableLength
      if (waitingWriters.push(this) === 1) setImmediate(flushAll)
    }
    return this.#pending.length < this.#room || this.flush()
  }

  /** Passes waiting items to the connection. */
  flush(): boolean {
    this.#scheduled = false
    const text = this.#pending
    this.#pending = ''
    if (text !== '') {
      this.#headFlushed = true
      return this.#hasRoom(this.#res.write(this.#kept(text), 'latin1'))
    }
    if (!this.#headFlushed) {
      this.#headFlushed = true
      this.#res.flushHeaders()
    }
    return !this.#res.writableNeedDrain
  }

  end(): void {
    const text = this.#pending + (this.#framed ? LAST_CHUNK : '')
    this.#pending = ''
    this.#headFlushed = true
    endWith(this.#res, text)
  }

  /**
   * Substrings keep the string they were cut from in memory. If the connection is behind, items are copied
   * before they wait.
   */
  #kept(text: string): string | Buffer {
    return this.#res.writableLength === 0 ? text : Buffer.from(text, 'latin1')
  }

  #writeLarge(item: Uint8Array, size: number): boolean {
    this.#headFlushed = true
    // What is written now is not in it.
    this.#room = 0
    const sizeLine = this.#framed ? `${(size + this.#frameBytes).toString(16)}${CRLF}` : ''
    const head = this.#pending + sizeLine + this.#before
    const tail = this.#after + (this.#framed ? CRLF : '')
    this.#pending = ''
    if (head !== '') this.#res.write(head, 'latin1')
    const room = this.#res.write(unpinned(item))
    return this.#hasRoom(tail === '' ? room : this.#res.write(tail, 'latin1'))
  }

  #hasRoom(room: boolean): boolean {
    if (!room) this.#onFull()
    return room
  }
}

/** Writers with items of this turn. */
let waitingWriters: ChunkWriter[] = []

/**
 * Runs after all reads of this turn, because a stream's items arrive in several chunks when other streams run
 * beside it.
 */
function flushAll(): void {
  const writers = waitingWriters
  waitingWriters = []
  for (const writer of writers) writer.flush()
  lastChunk = undefined
  lastText = ''
}

/** The chunk that items are being taken from; released at the end of the turn. */
let lastChunk: Uint8Array | undefined
let lastText = ''

/**
 * A part of a chunk as a string. The chunk is converted once for all its items, because a substring costs far
 * less than a conversion.
 */
function textAt(chunk: Uint8Array, from: number, to: number): string {
  if (chunk === lastChunk) return lastText.slice(from, to)
  // It has a large item, and few small ones.
  if (chunk.length > SOCKET_READ_BYTES) return latin1(chunk.subarray(from, to))
  lastChunk = chunk
  lastText = latin1(chunk)
  return lastText.slice(from, to)
}

/** Bytes as a string of the same length; Node writes it back as the same bytes. */
export function latin1(item: Uint8Array): string {
  return (Buffer.isBuffer(item) ? item : asBuffer(item)).toString('latin1')
}

function asBuffer(item: Uint8Array): Buffer {
  return Buffer.from(item.buffer, item.byteOffset, item.length)
}

/** Responses whose text waits in their sockets for the end of the turn. */
const ending: ServerResponse[] = []

/**
 * Ends a response with the text, one character per byte, in one plain write. `res.end(text)` writes an empty
 * string after it, and the gathered write of both takes a fifth more time. Answers of one turn of the event
 * loop leave at its end, one directly after the other: each wakes its client, and one that reads several
 * connections then finds the next answer instead of going to sleep again.
 */
export function endWith(res: ServerResponse, text: string): void {
  res.socket?.cork()
  res.write(text, 'latin1')
  if (ending.push(res) === 1) process.nextTick(sendAnswers)
}

/** Sends the answers of this turn. Call it before you destroy a connection that may have one of them. */
export function sendAnswers(): void {
  try {
    for (let res = ending.shift(); res !== undefined; res = ending.shift()) {
      res.socket?.uncork()
      res.end()
    }
  } finally {
    // Also after one that threw.
    if (ending.length > 0) process.nextTick(sendAnswers)
  }
}

/**
 * Node keeps the head of an open response as the fifty pieces that it was made of, 1.6 KB; a regular
 * expression makes V8 join them. The property is not public, and node-internals.test.ts checks it too.
 */
function joinHead(res: ServerResponse): void {
  const { _header: head } = res as { _header?: unknown }
  if (typeof head === 'string') STATUS_LINE.test(head)
}

const STATUS_LINE = /^HTTP/

/** Waiting bytes must not keep a much larger chunk in memory. */
function unpinned(item: Uint8Array): Uint8Array {
  return item.length * 4 < item.buffer.byteLength ? Buffer.from(item) : item
}
