import { CreditStream } from '../../protocol/credit-stream.ts'
import type { PredictRequest, ResponseMessage } from '../../protocol/messages.ts'
import type { Job } from '../jobs/job.ts'
import type { AbandonReason, BatchOwner, JobHolder, RunWatcher } from '../jobs/scheduler.ts'
import type { InputPort, JobRequest } from '../jobs/job-request.ts'
import type { Requests } from './requests.ts'
import { headerLine, splitHeaders } from '../../common/headers.ts'
import { startTimer } from '../../common/timer.ts'

/** What a request in flight needs of its worker. */
export type InFlightLink = Pick<
  Requests,
  | 'window'
  | 'knowsCredit'
  | 'cancel'
  | 'withdraw'
  | 'unexpected'
  | 'credit'
  | 'input'
  | 'discarded'
  | 'overdrawn'
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
    this.#credit = new CreditStream(link.window, link.knowsCredit)
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
    if (!this.batch.begun) {
      this.#link.unexpected(this)
      return false
    }
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

  abandon(job: Job, reason: AbandonReason): void {
    const { batch } = this
    if (!batch.begun) {
      batch.owner?.abandon(job, reason)
      this.#link.withdraw([batch])
    }
    // Also for a batch that waits at the worker: it may have begun there.
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

const NONE: ReadonlySet<string> = new Set()

/**
 * The headers for the handler: the client's, then those with which TorchServe tells a handler what is asked.
 * The last value of a repeated name wins, so a client cannot override them.
 * @param asked headers with credentials that the model asks for, in lower case; default: none
 */
export function handlerHeaders(
  request: Pick<JobRequest, 'headers' | 'credentials' | 'method' | 'urlPath' | 'tellsExplain'>,
  asked: ReadonlySet<string> = NONE,
): string {
  const { headers, credentials, method, urlPath } = request
  let lines = headers
  if (credentials !== undefined && asked.size > 0) lines += askedFor(credentials, asked)
  if (urlPath !== undefined) lines += headerLine('url_path', urlPath)
  if (method === 'explain') lines += 'explain\nTrue\n'
  else if (request.tellsExplain === true) lines += 'explain\nFalse\n'
  if (method === 'describe') lines += 'describe\nTrue\n'
  return lines
}

function askedFor(credentials: string, asked: ReadonlySet<string>): string {
  let lines = ''
  for (const [name, value] of Object.entries(splitHeaders(credentials))) {
    if (asked.has(name.toLowerCase())) lines += headerLine(name, value)
  }
  return lines
}

/** How long work that should end may go on at a worker. */
export interface HangLimits {
  /** Milliseconds that a cancelled request may continue; undefined: as long as it sends something. */
  readonly cancelGraceMs: number | undefined
  /** Milliseconds without a response after which a cancelled request counts as hung; undefined: never. */
  readonly silenceMs: number | undefined
  /** Milliseconds that the other ranks have after rank 0 has answered. */
  readonly rankLagMs: number
  /** Whether ending the worker now would fail requests that are wanted. */
  harmsOthers(): boolean
  /** The worker must be ended. */
  onHung(why: string): void
}

/** Milliseconds for responses to arrive that a paused connection held back. */
const FIRST_SIGN_MS = 1000

/**
 * Requests that were sent together. They occupy one slot of their worker until every rank has finished the
 * last of them, also when their jobs have ended before.
 */
export class Batch {
  readonly jobs: readonly Job[]
  readonly watcher: RunWatcher | undefined
  /** Where it comes back to if it does not begin. */
  readonly owner: BatchOwner | undefined
  /** False while it waits at the worker. */
  begun: boolean
  /** Whether the worker was asked to give it back. */
  withdrawn = false
  readonly entries: InFlight[] = []
  unfinished: number
  /** Number of responses to requests that had ended. */
  discarded = 0
  #grace: HangTimer | undefined
  #silence: HangTimer | undefined

  constructor(jobs: readonly Job[], watcher: RunWatcher | undefined, owner?: BatchOwner) {
    this.jobs = jobs
    this.watcher = watcher
    this.owner = owner
    this.begun = owner === undefined
    this.unfinished = jobs.length
  }

  /** Whether at least one of its jobs is open. */
  get wanted(): boolean {
    return this.jobs.some((job) => !job.ended)
  }

  /** Every request is cancelled; the last response came `silentMs` ago. */
  cancelled(limits: HangLimits, silentMs: number): void {
    const { cancelGraceMs, silenceMs } = limits
    if (cancelGraceMs !== undefined) this.#mustEnd(limits, cancelGraceMs)
    if (silenceMs === undefined) return
    const why = `a cancelled request sent nothing for ${silenceMs} ms; the worker is restarted`
    this.#silence ??= new HangTimer(limits, silenceMs, why, () => this.discarded)
    // A client that did not read may have held responses back, so they get some time to arrive.
    this.#silence.start(Math.max(silenceMs - silentMs, FIRST_SIGN_MS))
  }

  /** Rank 0 has finished a request: the other ranks do the same work, so they finish soon, or hang. */
  finishing(limits: HangLimits): void {
    this.#mustEnd(limits, limits.rankLagMs)
  }

  stopTimers(): void {
    this.#grace?.stop()
    this.#silence?.stop()
  }

  #mustEnd(limits: HangLimits, ms: number): void {
    const why = `a cancelled request ran for longer than ${ms} ms; the worker is restarted`
    this.#grace ??= new HangTimer(limits, ms, why, () => 0)
    this.#grace.start(ms)
  }
}

/** Reports a worker whose batch should end and goes on. */
class HangTimer {
  readonly #limits: HangLimits
  readonly #ms: number
  readonly #why: string
  readonly #signs: () => number
  #timer: NodeJS.Timeout | undefined

  /** @param signs the number of signs that it does not hang */
  constructor(limits: HangLimits, ms: number, why: string, signs: () => number) {
    this.#limits = limits
    this.#ms = ms
    this.#why = why
    this.#signs = signs
  }

  /** The time begins anew after a sign, and while a step that other requests wait for may be long. */
  start(ms: number): void {
    const seen = this.#signs()
    this.#timer ??= startTimer(() => {
      this.#timer = undefined
      if (this.#signs() > seen || this.#limits.harmsOthers()) this.start(this.#ms)
      else this.#limits.onHung(this.#why)
    }, ms)
  }

  stop(): void {
    clearTimeout(this.#timer)
  }
}
