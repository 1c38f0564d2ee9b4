import { connect, type Socket } from 'node:net'

/**
 * The cheapest known protocol to a worker on a Unix socket. A frame is a length (uint32, of the rest), the
 * request's number (uint32), one kind byte and the body, without encoding.
 */
export const HEAD_BYTES = 9
export const KIND = { whole: 0, stream: 1, item: 2, last: 3 } as const
export type Kind = (typeof KIND)[keyof typeof KIND]

/** Writes the head of a frame with a body of `length` bytes. */
export function writeHead(target: Buffer, offset: number, id: number, kind: Kind, length: number): void {
  target.writeUInt32BE(length + HEAD_BYTES - 4, offset)
  target.writeUInt32BE(id, offset + 4)
  target[offset + 8] = kind
}

/** Calls back with the body's offsets for every whole frame in a chunk; returns the rest. */
export function eachFrame(
  chunk: Buffer,
  onFrame: (id: number, kind: number, from: number, to: number) => void,
): Buffer | undefined {
  let offset = 0
  while (chunk.length - offset >= HEAD_BYTES) {
    const end = offset + 4 + chunk.readUInt32BE(offset)
    if (end > chunk.length) break
    onFrame(chunk.readUInt32BE(offset + 4), chunk[offset + 8]!, offset + HEAD_BYTES, end)
    offset = end
  }
  return offset < chunk.length ? chunk.subarray(offset) : undefined
}

/** Receives the answer to one request. `chunk` is the buffer that contains the body. */
export interface Receiver {
  item(chunk: Buffer, from: number, to: number): void
  /** The whole answer, or the end of a stream (then empty). */
  last(chunk: Buffer, from: number, to: number): void
  /** All frames that arrived together were delivered. */
  flush(): void
}

/** The frontend's end: sends the requests of one turn of the event loop in one write. */
export class Link {
  readonly #socket: Socket
  readonly #waiting = new Map<number, Receiver>()
  readonly #touched = new Set<Receiver>()
  #rest: Buffer | undefined
  #out: Buffer[] = []
  #nextId = 0

  constructor(socketPath: string) {
    this.#socket = connect(socketPath)
    this.#socket.on('data', (chunk: Buffer) => {
      const whole = this.#rest === undefined ? chunk : Buffer.concat([this.#rest, chunk])
      this.#rest = eachFrame(whole, (id, kind, from, to) => {
        this.#receive(whole, id, kind, from, to)
      })
      for (const receiver of this.#touched) receiver.flush()
      this.#touched.clear()
    })
  }

  ask(kind: Kind, body: Uint8Array, receiver: Receiver): void {
    const id = this.#nextId++ >>> 0
    this.#waiting.set(id, receiver)
    const frame = Buffer.allocUnsafe(HEAD_BYTES + body.byteLength)
    writeHead(frame, 0, id, kind, body.byteLength)
    frame.set(body, HEAD_BYTES)
    if (this.#out.push(frame) === 1) setImmediate(this.#send)
  }

  #receive(chunk: Buffer, id: number, kind: number, from: number, to: number): void {
    const receiver = this.#waiting.get(id)!
    if (kind === KIND.item) {
      receiver.item(chunk, from, to)
      this.#touched.add(receiver)
      return
    }
    this.#waiting.delete(id)
    this.#touched.delete(receiver)
    receiver.last(chunk, from, to)
  }

  readonly #send = (): void => {
    this.#socket.write(this.#out.length === 1 ? this.#out[0]! : Buffer.concat(this.#out))
    this.#out = []
  }
}
