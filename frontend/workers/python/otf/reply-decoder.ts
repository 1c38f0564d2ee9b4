import { ServeError } from '../../../../common/errors.ts'
import { UnreadBytes } from '../../../../common/byte-flow.ts'
import { setOwn } from '../../../../common/json.ts'

/** The response to one request, or one item of its stream. */
export interface OtfAnswer {
  requestId: string
  contentType: string
  status: number
  reason: string
  headers: Record<string, string>
  /** Value of the header `ts_stream_next`, which is not in `headers`. */
  streamNext: string | undefined
}

/** The content of the worker's replies, in order. */
export interface OtfReplyEvents {
  /** The bytes from..to of `chunk` are the body, valid until this returns. */
  onAnswer(answer: OtfAnswer, chunk: Buffer, from: number, to: number): void
  /**
   * The same for an item with only a body, the most frequent response: `ts_stream_next: true`, status 200.
   */
  onItem(requestId: string, chunk: Buffer, from: number, to: number): void
  /** The body of a response exceeds the limit; its bytes are skipped. */
  onTooLarge(answer: OtfAnswer, bytes: number): void
  /** A reply that is an error names a request. */
  onFailed(requestId: string, code: number, message: string): void
  /** A reply is complete. Code 200: no error. */
  onEnd(code: number, message: string): void
}

const INT = 4
const END_OF_LIST = -1
const OK = 200
/** Limits of ids and headers: ids are the server's own, and responses have few headers. */
const MAX_ID_BYTES = 1024
const MAX_HEADERS = 1000
const STREAM_NEXT = 'ts_stream_next'
/**
 * The bytes between the id and the body length of an item: no content type, status 200, no reason, one
 * header.
 */
const ITEM_HEAD = Buffer.concat([
  Buffer.from([0, 0, 0, 0, 0, 0, 0, 200, 0, 0, 0, 0, 0, 0, 0, 1]),
  Buffer.from('\0\0\0\x0ets_stream_next\0\0\0\x04true', 'latin1'),
])

/** Reads a field of `#wanted` bytes at `at`; returns where the next one starts. */
type Read = (chunk: Buffer, at: number) => number

/**
 * Decodes the replies of TorchServe's Python worker (ts/protocol/otf_message_handler.py) from chunks of any
 * size. Each field is read once, when all its bytes have arrived; only an incomplete field is kept. A field
 * may have `maxFieldBytes`, and so may all headers of one response together. Longer bodies are skipped, so
 * memory is bounded by that and one chunk.
 */
export class ReplyDecoder {
  readonly #maxFieldBytes: number
  /** The receiver; may change between two replies. */
  events: OtfReplyEvents
  readonly #unread = new UnreadBytes()
  #read: Read
  #wanted = INT
  /** Remaining bytes of an oversized body. */
  #skip = 0
  /** Reads a length field, and decides how large its field may be. */
  #field: Read
  #fieldLimit = 0
  #code = 0
  #message = ''
  #answer = newAnswer('')
  #headersLeft = 0
  #headerBytes = 0
  #headerName = ''

  constructor(maxFieldBytes: number, events: OtfReplyEvents) {
    this.#maxFieldBytes = maxFieldBytes
    this.events = events
    this.#read = this.#readCode
    this.#field = this.#readMessage
  }

  /** @throws ServeError PROTOCOL for an impossible length or count; later bytes are meaningless then */
  push(chunk: Buffer): void {
    const bytes = this.#unread.join(chunk, this.#wanted)
    if (bytes !== undefined) this.#readAll(bytes)
  }

  #readAll(chunk: Buffer): void {
    const end = chunk.byteLength
    let at = 0
    for (;;) {
      if (this.#skip > 0) {
        const skipped = Math.min(this.#skip, end - at)
        this.#skip -= skipped
        at += skipped
      }
      if (end - at < this.#wanted) break
      at = this.#read(chunk, at)
    }
    if (at < end) this.#unread.keep(chunk, at)
  }

  #expect(bytes: number, read: Read): void {
    this.#wanted = bytes
    this.#read = read
  }

  /** Expects a length, then that many bytes. */
  #expectField(read: Read, limit = this.#maxFieldBytes): void {
    this.#field = read
    this.#fieldLimit = limit
    this.#expect(INT, this.#readLength)
  }

  readonly #readLength: Read = (chunk, at) => {
    const length = chunk.readInt32BE(at)
    if (length < 0 || length > this.#fieldLimit) throw badLength(length, this.#fieldLimit)
    this.#expect(length, this.#field)
    return at + INT
  }

  readonly #readCode: Read = (chunk, at) => {
    this.#code = chunk.readInt32BE(at)
    this.#message = ''
    this.#expectField(this.#readMessage)
    return at + INT
  }

  readonly #readMessage: Read = (chunk, at) => {
    const end = at + this.#wanted
    if (this.#code !== OK) this.#message = chunk.toString('utf8', at, end)
    this.#expect(INT, this.#readIdLength)
    return end
  }

  readonly #readIdLength: Read = (chunk, at) => {
    const length = chunk.readInt32BE(at)
    if (length === END_OF_LIST) {
      this.#expect(INT, this.#readCode)
      this.events.onEnd(this.#code, this.#message)
    } else if (length < 0 || length > MAX_ID_BYTES) throw badLength(length, MAX_ID_BYTES)
    else this.#expect(length, this.#readId)
    return at + INT
  }

  readonly #readId: Read = (chunk, at) => {
    const end = at + this.#wanted
    const requestId = chunk.toString('latin1', at, end)
    if (this.#code === OK) {
      const next = this.#readItem(requestId, chunk, end)
      if (next !== undefined) return next
    }
    this.#answer = newAnswer(requestId)
    this.#expectField(this.#readContentType)
    return end
  }

  /** Reads the whole rest of an item at once, if it is there. */
  #readItem(requestId: string, chunk: Buffer, at: number): number | undefined {
    const sizeAt = at + ITEM_HEAD.byteLength
    const from = sizeAt + INT
    if (from > chunk.byteLength || ITEM_HEAD.compare(chunk, at, sizeAt) !== 0) return undefined
    const size = chunk.readInt32BE(sizeAt)
    const to = from + size
    if (size < 0 || size > this.#maxFieldBytes || to > chunk.byteLength) return undefined
    this.#expect(INT, this.#readIdLength)
    this.events.onItem(requestId, chunk, from, to)
    return to
  }

  readonly #readContentType: Read = (chunk, at) => {
    const end = at + this.#wanted
    this.#answer.contentType = chunk.toString('utf8', at, end)
    this.#expect(INT, this.#readStatus)
    return end
  }

  readonly #readStatus: Read = (chunk, at) => {
    this.#answer.status = chunk.readInt32BE(at)
    this.#expectField(this.#readReason)
    return at + INT
  }

  readonly #readReason: Read = (chunk, at) => {
    const end = at + this.#wanted
    this.#answer.reason = chunk.toString('utf8', at, end)
    this.#expect(INT, this.#readHeaderCount)
    return end
  }

  readonly #readHeaderCount: Read = (chunk, at) => {
    const count = chunk.readInt32BE(at)
    if (count < 0 || count > MAX_HEADERS) throw badLength(count, MAX_HEADERS)
    this.#headersLeft = count
    this.#headerBytes = 0
    this.#expectHeader()
    return at + INT
  }

  #expectHeader(): void {
    if (this.#headersLeft === 0) this.#expect(INT, this.#readBodyLength)
    else this.#expectField(this.#readHeaderName, this.#maxFieldBytes - this.#headerBytes)
  }

  readonly #readHeaderName: Read = (chunk, at) => {
    const end = at + this.#wanted
    this.#headerName = chunk.toString('utf8', at, end)
    this.#headerBytes += this.#wanted
    this.#expectField(this.#readHeaderValue, this.#maxFieldBytes - this.#headerBytes)
    return end
  }

  readonly #readHeaderValue: Read = (chunk, at) => {
    const end = at + this.#wanted
    this.#keepHeader(chunk.toString('utf8', at, end))
    this.#headerBytes += this.#wanted
    this.#headersLeft -= 1
    this.#expectHeader()
    return end
  }

  #keepHeader(value: string): void {
    if (this.#headerName === STREAM_NEXT) this.#answer.streamNext = value
    else setOwn(this.#answer.headers, this.#headerName, value)
  }

  readonly #readBodyLength: Read = (chunk, at) => {
    const length = chunk.readInt32BE(at)
    if (length < 0) throw badLength(length, this.#maxFieldBytes)
    if (length <= this.#maxFieldBytes) this.#expect(length, this.#readBody)
    else this.#skipBody(length)
    return at + INT
  }

  #skipBody(length: number): void {
    this.#skip = length
    this.#expect(INT, this.#readIdLength)
    if (this.#code === OK) this.events.onTooLarge(this.#answer, length)
    else this.#failed()
  }

  readonly #readBody: Read = (chunk, at) => {
    const end = at + this.#wanted
    this.#expect(INT, this.#readIdLength)
    if (this.#code === OK) this.events.onAnswer(this.#answer, chunk, at, end)
    else this.#failed()
    return end
  }

  #failed(): void {
    this.events.onFailed(this.#answer.requestId, this.#code, this.#message)
  }
}

function newAnswer(requestId: string): OtfAnswer {
  return { requestId, contentType: '', status: OK, reason: '', headers: {}, streamNext: undefined }
}

function badLength(length: number, limit: number): ServeError {
  return new ServeError('PROTOCOL', `A length in a reply must be from 0 to ${limit}, not ${length}`)
}
