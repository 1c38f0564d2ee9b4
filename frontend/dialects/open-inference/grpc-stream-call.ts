import type { AbandonReason } from '../../jobs/job.ts'
import { cancelReason, endAtDeadline } from '../../edge/grpc/deadline.ts'
import type { CallError } from '../torchserve/grpc-errors.ts'
import { guarded } from '../../edge/grpc/guarded.ts'
import type { GrpcLog } from '../../edge/grpc/log.ts'
import { deadlineOf } from '../../edge/grpc/request.ts'
import type { InferStream } from './grpc-deps.ts'
import type { ModelInferRequest } from './grpc-messages.ts'

/** Who decides what the messages of a call mean. */
export interface StreamHandler {
  message(message: ModelInferRequest): void
  /** The client sends no more. */
  halfClosed(): void
  /** The client's connection has room again after `send` returned false. */
  drained(): void
  cancel(reason: AbandonReason): void
}

/** The connection of one ModelStreamInfer call: reads when it may, writes and ends once. */
export class StreamCall {
  readonly call: InferStream
  readonly deadline: number | undefined
  readonly #log: GrpcLog
  readonly #onAccepted: () => void
  #handler: StreamHandler | undefined
  #full = false
  #over = false

  constructor(call: InferStream, log: GrpcLog) {
    this.call = call
    this.#log = log
    this.#onAccepted = this.guarded(() => this.#accepted())
    this.deadline = deadlineOf(call)
  }

  get full(): boolean {
    return this.#full
  }

  /** From now on; `first` is a message that was read already. */
  attach(handler: StreamHandler, first: ModelInferRequest): void {
    this.#handler = handler
    const { call } = this
    const take = (message: ModelInferRequest): void => {
      if (!this.#over) handler.message(message)
    }
    const halfClose = (): void => {
      if (!this.#over) handler.halfClosed()
    }
    call.on('data', this.guarded(take))
    call.on('end', this.guarded(halfClose))
    call.on(
      'cancelled',
      this.guarded(() => this.#cancel(cancelReason(this.deadline))),
    )
    endAtDeadline(
      call,
      this.guarded(() => this.#cancel('deadline')),
    )
    take(first)
  }

  /** A listener of this call; what it throws fails the call. */
  guarded<Args extends unknown[]>(listener: (...args: Args) => void): (...args: Args) => void {
    const fail = (error: CallError): void => {
      this.#handler?.cancel('failed')
      this.fail(error)
    }
    return guarded(this.#log, fail, listener)
  }

  /** False: the connection is full. */
  send(message: Buffer): boolean {
    if (this.#over) return true
    this.call.write(message, this.#onAccepted)
    this.#full = this.call.writableLength > 0
    return !this.#full
  }

  /** Whether the next message is read. */
  reading(wanted: boolean): void {
    if (this.#over) return
    if (!wanted) this.call.pause()
    else if (this.call.isPaused()) this.call.resume()
  }

  end(): void {
    if (this.#over) return
    this.#over = true
    this.call.end()
    this.#readOn()
  }

  /** The client gets the messages so far, then the status. */
  fail(error: CallError): void {
    if (this.#over) return
    this.#over = true
    this.call.emit('error', error)
    this.#readOn()
  }

  /** What is left unread would keep the call. */
  #readOn(): void {
    if (this.call.isPaused()) this.call.resume()
  }

  #cancel(reason: AbandonReason): void {
    if (this.#over) return
    this.#over = true
    this.#handler?.cancel(reason)
  }

  #accepted(): void {
    if (!this.#full || this.call.writableLength > 0) return
    this.#full = false
    if (!this.#over) this.#handler?.drained()
  }
}
