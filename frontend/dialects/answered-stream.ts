import type { DuplexCall, MessageUser } from '../edge/grpc/stream-call.ts'
import type { Job } from '../jobs/job.ts'
import type { AbandonReason } from '../jobs/scheduler.ts'

/** Requests of one call that may be open at the same time; the next is read when one has been answered. */
const MAX_OPEN = 64

/**
 * A call in which every message of the client is a request of its own. When the client has closed its side,
 * the call ends with the last reply. No message is read while the client does not take its replies.
 */
export abstract class AnsweredStream<
  Message,
  Reply extends { readonly job: Job | undefined },
> implements MessageUser<Message> {
  protected readonly call: DuplexCall<Message>
  /** The replies that have not ended. */
  protected readonly open = new Set<Reply>()
  #halfClosed = false

  constructor(call: DuplexCall<Message>) {
    this.call = call
  }

  abstract message(message: Message): void

  halfClosed(): void {
    this.#halfClosed = true
    this.settle()
  }

  drained(): void {
    for (const { job } of this.open) job?.drained()
    this.settle()
  }

  cancel(reason: AbandonReason): void {
    for (const { job } of this.open) job?.cancel(reason)
    this.open.clear()
  }

  done(reply: Reply): void {
    this.open.delete(reply)
    this.settle()
  }

  /** Ends the call after its last reply; else reads on, or stops reading for a while. */
  protected settle(): void {
    if (this.#halfClosed && this.open.size === 0) this.call.end()
    else this.call.reading(!this.call.full && this.open.size < MAX_OPEN)
  }
}
