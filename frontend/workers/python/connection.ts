import { connect, type Socket } from 'node:net'
import { ServeError } from '../../../common/errors.ts'
import { type OtfReplyEvents, ReplyDecoder } from './otf/reply-decoder.ts'

export interface ConnectionEvents {
  /** The socket has closed. `error` is set if the worker violated the protocol. */
  onClose(error: ServeError | undefined): void
}

/** Code and message of a reply without predictions, such as the reply to LOAD. */
export interface LoadReply {
  code: number
  message: string
}

const IGNORE = (): void => undefined

/** A connection to one rank of a TorchServe worker. Writes of one turn of the event loop leave together. */
export class Connection {
  readonly #socket: Socket
  readonly #decoder: ReplyDecoder
  #error: ServeError | undefined
  #corked = false
  /** Resolves when it is connected. */
  readonly connected: Promise<void>

  constructor(socketPath: string, maxFieldBytes: number, { onClose }: ConnectionEvents) {
    const socket = (this.#socket = connect(socketPath))
    this.#decoder = new ReplyDecoder(maxFieldBytes, loadEvents(IGNORE))
    this.connected = new Promise((resolve, reject) => {
      socket.once('connect', resolve)
      socket.once('close', () => {
        reject(this.#error ?? new ServeError('WORKER_LOST', 'The worker closed its socket'))
        onClose(this.#error?.code === 'PROTOCOL' ? this.#error : undefined)
      })
    })
    this.connected.catch(() => undefined)
    socket.on('error', ({ message }) => (this.#error ??= new ServeError('WORKER_LOST', message)))
    socket.on('data', (chunk: Buffer) => {
      this.#read(chunk)
    })
  }

  /** Sends LOAD and waits for the reply; pending forever if the connection ends first. */
  load(frame: Buffer): Promise<LoadReply> {
    return new Promise((resolve) => {
      this.#decoder.events = loadEvents(resolve)
      this.write(frame)
    })
  }

  /** Sets the receiver of all further replies. */
  answerTo(replies: OtfReplyEvents): void {
    this.#decoder.events = replies
  }

  write(frame: Buffer): void {
    if (!this.#socket.writable) return
    if (!this.#corked) {
      this.#corked = true
      this.#socket.cork()
      process.nextTick(() => {
        this.#corked = false
        this.#socket.uncork()
      })
    }
    this.#socket.write(frame)
  }

  /** Bytes that the worker has not taken. */
  get unsentBytes(): number {
    return this.#socket.writableLength
  }

  listen(on: boolean): void {
    if (on) this.#socket.resume()
    else this.#socket.pause()
  }

  /** Closes the connection, after which the worker exits. */
  close(): void {
    this.#socket.destroy()
  }

  /**
   * A protocol violation, or an exception here, ends the connection, because nothing after it can be trusted.
   */
  #read(chunk: Buffer): void {
    if (this.#error !== undefined) return
    try {
      this.#decoder.push(chunk)
    } catch (thrown) {
      const { message, detail } = ServeError.from(thrown)
      this.#error = new ServeError('PROTOCOL', message, { detail, cause: thrown })
      this.#socket.destroy()
    }
  }
}

function loadEvents(onReply: (reply: LoadReply) => void): OtfReplyEvents {
  return {
    onItem: IGNORE,
    onAnswer: IGNORE,
    onTooLarge: IGNORE,
    onFailed: IGNORE,
    onEnd: (code, message) => {
      onReply({ code, message })
    },
  }
}
