import { connect, type Socket } from 'node:net'
import { ServeError } from '../../../common/errors.ts'
import { type OtfReplyEvents, ReplyDecoder } from './otf/reply-decoder.ts'

export interface ConnectionEvents {
  /** The socket is gone. `error` says what the worker did wrong, if it did. */
  onClose(error: ServeError | undefined): void
}

/** The code and the message of a reply without answers, as to LOAD. */
export interface LoadReply {
  code: number
  message: string
}

const IGNORE = (): void => undefined

/** A connection to one rank of a worker of TorchServe. What is written in one go of the event loop leaves together. */
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

  /** Sends LOAD and waits for its reply; forever if the connection ends before. */
  load(frame: Buffer): Promise<LoadReply> {
    return new Promise((resolve) => {
      this.#decoder.events = loadEvents(resolve)
      this.write(frame)
    })
  }

  /** From now on replies go there. */
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

  listen(on: boolean): void {
    if (on) this.#socket.resume()
    else this.#socket.pause()
  }

  /** The worker leaves, for it is told that its frontend has. */
  close(): void {
    this.#socket.destroy()
  }

  /** Whatever breaks the protocol, or throws here, ends the connection: nothing after it can be trusted. */
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
