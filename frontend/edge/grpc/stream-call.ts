import { callOf, type GrpcCall } from './call.ts'
import type { Metadata, ServerDuplexStream, ServerWritableStream } from '@grpc/grpc-js'
import type { AbandonReason } from '../../jobs/scheduler.ts'
import { type CallError, type GrpcLog, guarded } from './call-error.ts'
import { cancelReason, deadlineOf } from './metadata.ts'
import { startTimer } from '../../../common/timer.ts'

/** Who decides what the messages of a stream mean. Nothing is called after `end`, `fail` or `cancel`. */
export interface StreamUser {
  /** The client's connection has room again after `send` returned false. */
  drained(): void
  /** The client left, or its deadline has passed. */
  cancel(reason: AbandonReason): void
}

/** The same for calls whose clients send a stream too. */
export interface MessageUser<Message> extends StreamUser {
  message(message: Message): void
  /** The client sends no more. */
  halfClosed(): void
}

/** One call that answers with a stream of encoded messages: writes as far as there is room, ends once. */
export class StreamCall {
  readonly metadata: Metadata
  /** Milliseconds since the epoch. */
  readonly deadline: number | undefined
  readonly sender: GrpcCall
  user: StreamUser | undefined
  readonly #call: ServerWritableStream<unknown, Buffer> | ServerDuplexStream<unknown, Buffer>
  readonly #log: GrpcLog
  #full = false
  #over = false

  /** `log` hears what its listeners throw. */
  constructor(
    call: ServerWritableStream<unknown, Buffer> | ServerDuplexStream<unknown, Buffer>,
    log: GrpcLog,
  ) {
    this.#call = call
    this.#log = log
    this.metadata = call.metadata
    this.deadline = deadlineOf(call)
    this.sender = callOf(call)
    call.on(
      'cancelled',
      this.guarded(() => this.#cancel(cancelReason(this.deadline))),
    )
    if (this.deadline !== undefined) this.#endAt(this.deadline)
  }

  /** Whether messages wait for the client's connection. */
  get full(): boolean {
    return this.#full
  }

  /** Ended, failed or cancelled. */
  get over(): boolean {
    return this.#over
  }

  /** Initial metadata, before the first message; undefined: none. */
  sendHead(metadata: Metadata | undefined): void {
    if (metadata !== undefined && !this.#over) this.#call.sendMetadata(metadata)
  }

  /** False: the connection is full (eager-call.ts says when), and the user hears `drained`. */
  send(message: Buffer): boolean {
    if (this.#over) return true
    this.#call.write(message, this.#onAccepted)
    this.#full = this.#call.writableLength > 0
    return !this.#full
  }

  end(): void {
    if (this.#over) return
    this.#over = true
    this.#call.end()
    this.ended()
  }

  /** The event, not `destroy`: the client gets the messages so far, then the status. */
  fail(error: CallError): void {
    if (this.#over) return
    this.#over = true
    this.#call.emit('error', error)
    this.ended()
  }

  /** A listener of this call: what it throws fails this call alone. */
  protected guarded<Args extends unknown[]>(listener: (...args: Args) => void): (...args: Args) => void {
    return guarded(this.#log, (error) => this.fail(error), listener)
  }

  /** The call has ended by itself. */
  protected ended(): void {
    // Nothing is left here.
  }

  /**
   * grpc-js answers a deadline by itself, but says `cancelled` only once the status has left: never, when the
   * reader stands still. Messages that still wait must not follow the status, hence `destroy`, which sends
   * nothing.
   */
  #endAt(deadline: number): void {
    const rest = Math.max(deadline - Date.now(), 0)
    const end = this.guarded(() => {
      this.#cancel('deadline')
      this.#call.destroy()
    })
    const timer = startTimer(end, rest)
    this.#call.on('cancelled', () => clearTimeout(timer))
  }

  #cancel(reason: AbandonReason): void {
    if (this.#over) return
    this.#over = true
    this.user?.cancel(reason)
  }

  /** Called for every message, so what costs more than a look comes after the first line. */
  readonly #onAccepted = (): void => {
    if (!this.#full || this.#call.writableLength > 0) return
    this.#full = false
    if (!this.#over) this.#drained()
  }

  readonly #drained = this.guarded(() => this.user?.drained())
}

/** A call whose client sends a stream too: reads when it may. */
export class DuplexCall<Message> extends StreamCall {
  readonly #call: ServerDuplexStream<Message, Buffer>
  #requests = 0

  constructor(call: ServerDuplexStream<Message, Buffer>, log: GrpcLog) {
    super(call, log)
    this.#call = call
  }

  /**
   * To be called for each message that is a request of its own. The first one was counted with the call.
   * @throws ServeError RATE_LIMITED
   */
  countRequest(): void {
    if (++this.#requests > 1) this.sender.countRequest()
  }

  /** From now on messages are read. */
  read(user: MessageUser<Message>): void {
    this.user = user
    const call = this.#call
    const take = (message: Message): void => {
      if (!this.over) user.message(message)
    }
    const end = (): void => {
      if (!this.over) user.halfClosed()
    }
    call.on('data', this.guarded(take)).on('end', this.guarded(end))
  }

  /** Whether the next message is read. */
  reading(wanted: boolean): void {
    if (this.over) return
    if (!wanted) this.#call.pause()
    else if (this.#call.isPaused()) this.#call.resume()
  }

  /** What is left unread would keep the call. */
  protected override ended(): void {
    if (this.#call.isPaused()) this.#call.resume()
  }
}
