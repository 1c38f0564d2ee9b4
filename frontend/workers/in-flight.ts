import { CreditStream } from '../../protocol/credit-stream.ts'
import type { PredictRequest, ResponseMessage } from '../../protocol/messages.ts'
import type { Job } from '../jobs/job.ts'
import type { AbandonReason, JobHolder } from '../jobs/scheduler.ts'
import type { InputPort } from '../jobs/job-request.ts'
import type { Batch } from './batch.ts'
import { handlerHeaders } from './handler-headers.ts'
import type { Requests } from './requests.ts'

/** What a request in flight needs of its worker. */
export type InFlightLink = Pick<
  Requests,
  'window' | 'knowsCredit' | 'cancel' | 'credit' | 'input' | 'discarded' | 'overdrawn'
>

/**
 * One request in flight on a worker: passes the worker's responses to the job, and returns credit to the
 * worker as the client reads.
 */
export class InFlight implements JobHolder, InputPort {
  readonly id: number
  readonly job: Job
  readonly batch: Batch
  /** Number of ranks that have not finished it. */
  unfinishedRanks: number
  readonly #link: InFlightLink
  readonly #credit: CreditStream
  #blocked = false

  constructor(id: number, job: Job, batch: Batch, ranks: number, link: InFlightLink) {
    this.id = id
    this.job = job
    this.batch = batch
    this.unfinishedRanks = ranks
    this.#link = link
    this.#credit = new CreditStream(link.window, undefined, link.knowsCredit)
  }

  /** The request for the worker. @param credentialHeaders that the model asks for, in lower case */
  message(credentialHeaders: ReadonlySet<string>): PredictRequest {
    const { requestId, method, parts, deadline, feed } = this.job.request
    const headers = handlerHeaders(this.job.request, credentialHeaders)
    const message: PredictRequest = {
      method,
      id: this.id,
      requestId,
      headers,
      parts,
      window: this.#link.window,
    }
    if (deadline !== undefined) message.deadline = deadline
    if (feed !== undefined) message.moreInputs = true
    return message
  }

  /** A response arrived. Returns true if it was the last one. */
  respond(message: ResponseMessage): boolean {
    const last = message.ts_stream_next !== 'true'
    if (!last && this.#overdraws(message.body.byteLength)) return false
    if (last && this.job.ended) this.#link.discarded(this.batch)
    const room = this.#answer(message, last)
    if (!last) this.#took(room)
    return last
  }

  /** An item with only a body arrived. */
  item(chunk: Buffer, from: number, to: number, arrivedAt?: number): void {
    const { job } = this
    if (!job.streaming)
      this.respond({ type: 'response', id: this.id, body: chunk.subarray(from, to), ts_stream_next: 'true' })
    else if (!this.#overdraws(to - from)) this.#took(job.item(chunk, from, to, arrivedAt))
  }

  /**
   * The worker saw at most the credit that was sent, so an item that arrives now was sent without any. One
   * item may exceed the window; it arrived before.
   */
  #overdraws(bytes: number): boolean {
    if (this.job.ended || this.#credit.consume(bytes)) return false
    this.#link.overdrawn(this)
    return true
  }

  #took(room: boolean): void {
    if (this.job.ended) {
      this.#link.discarded(this.batch)
      return
    }
    if (!room) this.#blocked = true
    this.#giveCredit()
  }

  #answer(message: ResponseMessage, last: boolean): boolean {
    const { watcher } = this.batch
    const headers = message.headers ?? NO_HEADERS
    return this.job.respond({
      body: message.body,
      more: message.ts_stream_next === undefined ? undefined : !last,
      status: message.status ?? 200,
      reason: message.reason,
      contentType: message.contentType,
      headers: watcher === undefined ? headers : watcher.answering(this.job, headers),
    })
  }

  abandon(_job: Job, reason: AbandonReason): void {
    this.#link.cancel(this, reason)
  }

  input(data: Uint8Array | undefined): void {
    this.#link.input(this, data)
  }

  drained(): void {
    this.#blocked = false
    this.#giveCredit()
  }

  /** Credit is returned in portions of half a window, so that a fast reader costs few messages. */
  #giveCredit(): void {
    const { used } = this.#credit
    if (this.#blocked || used * 2 < this.#link.window) return
    this.#link.credit(this.id, used)
    this.#credit.grant(used)
  }
}

const NO_HEADERS: Readonly<Record<string, string>> = Object.freeze({})
