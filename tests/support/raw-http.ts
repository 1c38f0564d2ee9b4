import { connect, type Socket } from 'node:net'

/**
 * What came back on one connection, with every HTTP chunk by itself, because client libraries join chunks.
 */
export interface RawResponse {
  status: number
  /** The phrase behind the status. */
  reason: string
  /** Names in lower case. */
  headers: Record<string, string>
  chunks: Buffer[]
  /** Whether the body ended as its framing says (zero chunk, content-length). False: it was broken off. */
  complete: boolean
  body: string
}

export interface RawRequestOptions {
  method?: string
  headers?: Record<string, string>
  body?: string | Buffer
}

/** A request on a socket of its own, read chunk by chunk. */
export class RawRequest {
  readonly socket: Socket
  /** Resolves when the body is complete or the connection is gone. */
  readonly done: Promise<RawResponse>
  readonly chunks: Buffer[] = []
  readonly #waiting: { count: number; resolve: () => void; reject: (error: Error) => void }[] = []
  #rest = Buffer.alloc(0)
  #head: Pick<RawResponse, 'status' | 'reason' | 'headers'> | undefined
  #complete = false
  #finish!: (response: RawResponse) => void

  constructor(
    port: number,
    path: string,
    { method = 'POST', headers = {}, body = '' }: RawRequestOptions = {},
  ) {
    this.done = new Promise((resolve) => {
      this.#finish = resolve
    })
    this.socket = connect(port, '127.0.0.1')
    const lines = Object.entries({
      host: `127.0.0.1:${port}`,
      ...(method === 'GET' ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
      ...headers,
    }).map(([name, value]) => `${name}: ${value}`)
    this.socket.write(`${method} ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`)
    if (body.length > 0) this.socket.write(body)
    this.socket.on('data', (data: Buffer) => {
      this.#push(data)
    })
    this.socket.on('error', () => undefined)
    this.socket.once('close', () => {
      this.#end()
    })
  }

  /** Resolves once that many chunks came; rejects when the answer ends before. */
  async gotChunks(count: number): Promise<void> {
    if (this.chunks.length >= count) return
    await new Promise<void>((resolve, reject) => this.#waiting.push({ count, resolve, reject }))
  }

  /** Disconnects like a killed client. */
  destroy(): void {
    this.socket.destroy()
  }

  #push(data: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, data])
    this.#head ??= this.#readHead()
    if (this.#head === undefined) return
    if (this.#head.headers['transfer-encoding'] === 'chunked') this.#readChunks()
    else this.#readPlain(Number(this.#head.headers['content-length'] ?? '0'))
    if (this.#complete) this.socket.destroy()
  }

  #readHead(): Pick<RawResponse, 'status' | 'reason' | 'headers'> | undefined {
    const end = this.#rest.indexOf('\r\n\r\n')
    if (end < 0) return undefined
    const [status = '', ...lines] = this.#rest.subarray(0, end).toString('latin1').split('\r\n')
    this.#rest = this.#rest.subarray(end + 4)
    const headers = lines.map((line) => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const
    })
    const [, code, ...reason] = status.split(' ')
    return { status: Number(code), reason: reason.join(' '), headers: Object.fromEntries(headers) }
  }

  #readChunks(): void {
    for (;;) {
      const lineEnd = this.#rest.indexOf('\r\n')
      if (lineEnd < 0) return
      const size = parseInt(this.#rest.subarray(0, lineEnd).toString('latin1'), 16)
      if (this.#rest.length < lineEnd + 2 + size + 2) return
      const chunk = this.#rest.subarray(lineEnd + 2, lineEnd + 2 + size)
      this.#rest = this.#rest.subarray(lineEnd + 2 + size + 2)
      if (size === 0) {
        this.#complete = true
        return
      }
      this.chunks.push(chunk)
      this.#notify()
    }
  }

  #readPlain(length: number): void {
    if (this.#rest.length < length) return
    if (length > 0) this.chunks.push(this.#rest.subarray(0, length))
    this.#complete = true
  }

  #notify(): void {
    for (const waiting of this.#waiting.filter(({ count }) => count <= this.chunks.length)) waiting.resolve()
  }

  #end(): void {
    for (const { count, reject } of this.#waiting) reject(new Error(`The answer ended before chunk ${count}`))
    this.#finish({
      status: this.#head?.status ?? 0,
      reason: this.#head?.reason ?? '',
      headers: this.#head?.headers ?? {},
      chunks: this.chunks,
      complete: this.#complete,
      body: Buffer.concat(this.chunks).toString(),
    })
  }
}

/** One request, read to its end. */
export function rawRequest(
  port: number,
  path: string,
  options: RawRequestOptions = {},
): Promise<RawResponse> {
  return new RawRequest(port, path, options).done
}
