import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
const TYPE = { data: 0, headers: 1, rst: 3, settings: 4, ping: 6, goaway: 7, window: 8 } as const
const END_STREAM = 1
const END_HEADERS = 4
const ACK = 1
const DEFAULT_WINDOW = 65_535
const MAX_FRAME = 16_384

/** Headers of a gRPC call, as required by HTTP/2 and gRPC only. */
const CALL_HEADERS: Readonly<Record<string, string>> = {
  ':method': 'POST',
  ':scheme': 'http',
  ':authority': 'localhost',
  'content-type': 'application/grpc',
  te: 'trailers',
}

/**
 * One HTTP/2 connection (RFC 9113) that sends exactly the given frames, however hostile. It respects the
 * server's flow control, so the bytes that it could send are those that the server accepted.
 */
export class RawHttp2 {
  readonly socket: Socket
  /** Payload bytes of DATA that went out. */
  sent = 0
  /** The error code of each RST_STREAM of the server, by stream. */
  readonly resets = new Map<number, number>()
  /** Streams on which the server sent HEADERS with END_STREAM: calls that ended with trailers. */
  readonly ended = new Set<number>()
  /** The error code of the server's GOAWAY. */
  goaway: number | undefined
  closed = false
  #nextStream = 1
  #window = DEFAULT_WINDOW
  #initialWindow = DEFAULT_WINDOW
  readonly #windows = new Map<number, number>()
  #unread: Buffer = Buffer.alloc(0)
  #heard: (() => void)[] = []

  /** `ack`: whether it confirms the server's settings, after which they bind it. */
  constructor(port: number, host = '127.0.0.1', ack = true, localAddress?: string) {
    this.socket = connect({ port, host, noDelay: true, ...(localAddress !== undefined && { localAddress }) })
    this.socket.on('error', () => undefined)
    this.socket.on('close', () => {
      this.closed = true
      this.#wake()
    })
    this.socket.on('data', (chunk: Buffer) => this.#read(chunk, ack))
    this.socket.write(PREFACE)
    this.frame(TYPE.settings, 0, 0, Buffer.alloc(0))
  }

  async ready(): Promise<void> {
    // A connection that the server resets may never report an end.
    if (this.socket.connecting) await once(this.socket, 'connect').catch(() => undefined)
  }

  frame(type: number, flags: number, stream: number, payload: Buffer): void {
    this.socket.write(frameOf(type, flags, stream, payload))
  }

  /** Opens a gRPC call and leaves its side open. Pairs may name a header twice. */
  call(path: string, headers: Record<string, string> | [name: string, value: string][] = {}): number {
    const stream = this.#nextStream
    this.#nextStream += 2
    this.#windows.set(stream, this.#initialWindow)
    const more = Array.isArray(headers) ? headers : Object.entries(headers)
    this.socket.write(callFrame(path, stream, more))
    return stream
  }

  /** What still fits the windows of a stream and of the connection. */
  room(stream: number): number {
    return Math.min(this.#window, this.#windows.get(stream) ?? 0)
  }

  /** Sends what fits of the payload in frames of `piece` bytes; how many bytes it sent. */
  data(stream: number, payload: Buffer, piece = MAX_FRAME): number {
    const size = Math.min(payload.byteLength, this.room(stream))
    const frames: Buffer[] = []
    for (let at = 0; at < size; at += piece) {
      const part = payload.subarray(at, Math.min(at + piece, size))
      const head = Buffer.alloc(9)
      head.writeUIntBE(part.byteLength, 0, 3)
      head.writeUInt32BE(stream, 5)
      frames.push(head, part)
    }
    if (size > 0) this.socket.write(Buffer.concat(frames))
    this.#window -= size
    this.#windows.set(stream, this.#windows.get(stream)! - size)
    this.sent += size
    return size
  }

  /** Sends all of it as the windows open; false: the server ended the stream or the connection first. */
  async dataAll(stream: number, payload: Buffer, piece = MAX_FRAME): Promise<boolean> {
    for (let at = 0; at < payload.byteLength;) {
      if (this.over(stream)) return false
      const went = this.data(stream, payload.subarray(at), piece)
      at += went
      if (went === 0) await this.heard()
    }
    return !this.over(stream)
  }

  endStream(stream: number): void {
    this.frame(TYPE.data, END_STREAM, stream, Buffer.alloc(0))
  }

  /** Lets the server send so many bytes more, on a stream or (0) on the connection. */
  window(stream: number, bytes: number): void {
    const payload = Buffer.alloc(4)
    payload.writeUInt32BE(bytes)
    this.frame(TYPE.window, 0, stream, payload)
  }

  over(stream: number): boolean {
    return this.closed || this.resets.has(stream) || this.ended.has(stream)
  }

  /** Waits for a frame of the server, or its end. */
  heard(): Promise<void> {
    if (this.closed) return Promise.resolve()
    return new Promise((resolve) => this.#heard.push(resolve))
  }

  /** Waits until the condition holds or the connection has ended. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition() && !this.closed) await this.heard()
  }

  /** The server has read everything that was sent before. */
  async ping(): Promise<void> {
    const before = this.#pongs
    this.frame(TYPE.ping, 0, 0, Buffer.alloc(8))
    await this.until(() => this.#pongs > before)
  }
  #pongs = 0

  async destroy(): Promise<void> {
    if (this.closed) return
    this.socket.destroy()
    await once(this.socket, 'close')
  }

  #wake(): void {
    const waiting = this.#heard
    this.#heard = []
    for (const resolve of waiting) resolve()
  }

  #read(chunk: Buffer, ack: boolean): void {
    this.#unread = Buffer.concat([this.#unread, chunk])
    while (this.#unread.byteLength >= 9) {
      const size = 9 + this.#unread.readUIntBE(0, 3)
      if (this.#unread.byteLength < size) break
      const frame = this.#unread.subarray(0, size)
      this.#unread = this.#unread.subarray(size)
      this.#take(
        frame.readUInt8(3),
        frame.readUInt8(4),
        frame.readUInt32BE(5) & 0x7fffffff,
        frame.subarray(9),
        ack,
      )
    }
    this.#wake()
  }

  #take(type: number, flags: number, stream: number, payload: Buffer, ack: boolean): void {
    if (type === TYPE.rst) this.resets.set(stream, payload.readUInt32BE(0))
    else if (type === TYPE.goaway) this.goaway = payload.readUInt32BE(4)
    else if (type === TYPE.headers && (flags & END_STREAM) !== 0) this.ended.add(stream)
    else if (type === TYPE.data && (flags & END_STREAM) !== 0) this.ended.add(stream)
    else if (type === TYPE.ping && (flags & ACK) !== 0) this.#pongs++
    else if (type === TYPE.ping) this.frame(TYPE.ping, ACK, 0, payload)
    else if (type === TYPE.settings && (flags & ACK) === 0) {
      this.#settings(payload)
      if (ack) this.frame(TYPE.settings, ACK, 0, Buffer.alloc(0))
    } else if (type === TYPE.window) {
      const more = payload.readUInt32BE(0)
      if (stream === 0) this.#window += more
      else this.#windows.set(stream, (this.#windows.get(stream) ?? 0) + more)
    }
  }

  #settings(payload: Buffer): void {
    for (let at = 0; at < payload.byteLength; at += 6) {
      if (payload.readUInt16BE(at) !== 4) continue
      const change = payload.readUInt32BE(at + 2) - this.#initialWindow
      this.#initialWindow += change
      for (const [stream, window] of this.#windows) this.#windows.set(stream, window + change)
    }
  }
}

/** The frame that opens a gRPC call. */
export function callFrame(path: string, stream: number, more: [name: string, value: string][] = []): Buffer {
  const block = hpack([[':path', path], ...Object.entries(CALL_HEADERS), ...more])
  return frameOf(TYPE.headers, END_HEADERS, stream, block)
}

/** Any frame (RFC 9113, 4.1). */
export function frameOf(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.byteLength, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** A gRPC message with its five-byte prefix; `size`: a false size for the prefix. */
export function grpcMessage(body: Buffer, { compressed = false, size = body.byteLength } = {}): Buffer {
  const head = Buffer.alloc(5)
  head.writeUInt8(compressed ? 1 : 0, 0)
  head.writeUInt32BE(size, 1)
  return Buffer.concat([head, body])
}

/** A header block of literals that are neither indexed nor Huffman coded (RFC 7541, 6.2.2). */
function hpack(headers: [name: string, value: string][]): Buffer {
  const parts: Buffer[] = []
  for (const [name, value] of headers) parts.push(Buffer.from([0]), text(name), text(value))
  return Buffer.concat(parts)
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value, 'latin1')
  return Buffer.concat([integer(bytes.byteLength), bytes])
}

/** An integer with a prefix of seven bits (RFC 7541, 5.1). */
function integer(value: number): Buffer {
  if (value < 127) return Buffer.from([value])
  const bytes = [127]
  let rest = value - 127
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128)
  return Buffer.from([...bytes, rest])
}
