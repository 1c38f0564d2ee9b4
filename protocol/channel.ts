import type { Socket } from 'node:net'
import { decodeFromWorker, decodeToWorker, encode } from './codec.ts'
import { ServeError } from './errors.ts'
import { FrameDecoder } from './frame.ts'
import type { FromWorker, ToWorker } from './messages.ts'

export interface ChannelEvents<In> {
  onMessage(message: In): void
  /** Once, when the socket is gone. `error` says why if it was not a plain end. */
  onClose(error?: ServeError): void
}

/**
 * A socket that speaks messages. Messages sent in one turn of the event loop leave in one write. Anything that breaks
 * the protocol, or throws in `onMessage`, closes the channel: after it nothing on this socket can be trusted.
 */
export class Channel<In, Out extends ToWorker | FromWorker> {
  readonly #socket: Socket
  readonly #events: ChannelEvents<In>
  #corked = false
  #error: ServeError | undefined

  constructor(
    socket: Socket,
    maxFrameBytes: number,
    decode: (frame: Buffer) => In,
    events: ChannelEvents<In>,
  ) {
    this.#socket = socket
    this.#events = events
    const decoder = new FrameDecoder(maxFrameBytes, (frame) => {
      if (this.#error === undefined) events.onMessage(decode(frame))
    })
    socket.on('data', (chunk: Buffer) => {
      try {
        if (this.#error === undefined) decoder.push(chunk)
      } catch (thrown) {
        this.close(ServeError.from(thrown))
      }
    })
    socket.on('error', (error) => {
      this.#error ??= new ServeError('WORKER_LOST', error.message, { cause: error })
    })
    socket.once('close', () => {
      this.#events.onClose(this.#error)
    })
  }

  get open(): boolean {
    return this.#socket.writable
  }

  /** Bytes accepted by `send` that the kernel has not taken yet. */
  get unsentBytes(): number {
    return this.#socket.writableLength
  }

  send(message: Out): void {
    if (!this.#socket.writable) return
    if (!this.#corked) {
      this.#corked = true
      this.#socket.cork()
      process.nextTick(this.#uncork)
    }
    this.#socket.write(encode(message))
  }

  /** Ends after what was sent; with an error, at once. */
  close(error?: ServeError): void {
    this.#error ??= error
    if (error === undefined) this.#socket.end()
    else this.#socket.destroy()
  }

  readonly #uncork = (): void => {
    this.#corked = false
    this.#socket.uncork()
  }
}

/** The frontend's end of a worker socket. */
export function frontendChannel(
  socket: Socket,
  maxFrameBytes: number,
  events: ChannelEvents<FromWorker>,
): Channel<FromWorker, ToWorker> {
  return new Channel(socket, maxFrameBytes, decodeFromWorker, events)
}

/** The worker's end of its socket. */
export function workerChannel(
  socket: Socket,
  maxFrameBytes: number,
  events: ChannelEvents<ToWorker>,
): Channel<ToWorker, FromWorker> {
  return new Channel(socket, maxFrameBytes, decodeToWorker, events)
}
