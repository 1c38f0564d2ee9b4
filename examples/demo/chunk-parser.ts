/** Receives the pieces of an HTTP/1.1 response as they are on the wire. */
export interface ChunkEvents {
  onHead(status: number, head: string): void
  /** One chunk of the chunked coding, as the server framed it. */
  onChunk(chunk: Buffer): void
  /** The zero chunk: the answer is complete. */
  onEnd(): void
}

const CRLF = '\r\n'

/**
 * Parses one chunked HTTP response from raw bytes. node:http removes the framing and may join chunks that
 * arrive together; this counts every chunk once.
 */
export class ChunkParser {
  readonly #events: ChunkEvents
  #pending: Buffer = Buffer.alloc(0)
  #state: 'head' | 'body' | 'done' = 'head'

  constructor(events: ChunkEvents) {
    this.#events = events
  }

  /** @throws Error when the bytes are not a chunked response */
  push(bytes: Buffer): void {
    this.#pending = this.#pending.byteLength === 0 ? bytes : Buffer.concat([this.#pending, bytes])
    while (this.#step());
  }

  /** Parses one head or chunk; false when more bytes are needed. */
  #step(): boolean {
    if (this.#state === 'done') return false
    return this.#state === 'head' ? this.#readHead() : this.#readChunk()
  }

  #readHead(): boolean {
    const end = this.#pending.indexOf(CRLF + CRLF)
    if (end < 0) return false
    const head = this.#pending.toString('latin1', 0, end)
    this.#pending = this.#pending.subarray(end + 4)
    const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1])
    if (!/^transfer-encoding: *chunked/im.test(head)) {
      throw new Error(`Not a chunked response: ${head.split(CRLF)[0]!}\n${this.#pending.toString()}`)
    }
    this.#events.onHead(status, head)
    this.#state = 'body'
    return true
  }

  #readChunk(): boolean {
    const lineEnd = this.#pending.indexOf(CRLF)
    if (lineEnd < 0) return false
    const size = parseInt(this.#pending.toString('latin1', 0, lineEnd), 16)
    if (Number.isNaN(size)) throw new Error('A chunk has no size')
    const start = lineEnd + 2
    if (this.#pending.byteLength < start + size + 2) return false
    const chunk = this.#pending.subarray(start, start + size)
    this.#pending = this.#pending.subarray(start + size + 2)
    if (size > 0) this.#events.onChunk(chunk)
    else this.#end()
    return true
  }

  #end(): void {
    this.#state = 'done'
    this.#events.onEnd()
  }
}
