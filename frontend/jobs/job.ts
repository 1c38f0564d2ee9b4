import { type ErrorCode, ServeError } from '../../common/errors.ts'
import type { InputPart } from '../../common/handler-methods.ts'
import type { Outcome } from '../observe/metrics/tally.ts'
import type { JobSpan } from '../observe/traces/tracing.ts'
import type { InputBudget, JobOwner } from './open-jobs.ts'
import type { JobRequest } from './job-request.ts'
import type { AbandonReason, JobHolder } from './scheduler.ts'
import type { JobResponse, ReplySink } from './reply-sink.ts'
import type { JobLimits, Limited, TimeLimit } from './time-limit.ts'

/** Response header with the version that weights chose for the request. */
export const VERSION_HEADER = 'x-model-version'

const NO_PARTS: InputPart[] = []

/** Outcomes of jobs that fail with these; others are `failed`. */
const OUTCOME_OF: Partial<Record<ErrorCode, Outcome>> = {
  CANCELLED: 'cancelled',
  SHUTTING_DOWN: 'cancelled',
  CLIENT_STALLED: 'client_stalled',
}

type JobState = 'created' | 'queued' | 'assigned' | 'streaming' | 'ended'

/** The states that may follow each state. */
const NEXT: Readonly<Record<JobState, readonly JobState[]>> = {
  created: ['queued', 'assigned', 'ended'],
  queued: ['assigned', 'ended'],
  assigned: ['streaming', 'ended'],
  streaming: ['ended'],
  ended: [],
}

/**
 * One request on its way from the queue to a worker, with its responses back to the client's sink. It guards
 * the contract of a stream: the first item determines status and headers, there is exactly one end, and each
 * time limit runs by itself.
 */
export class Job implements Limited {
  readonly request: JobRequest
  readonly createdAt = performance.now()
  /** When a worker got the job; undefined while it is queued. */
  startedAt: number | undefined
  firstResponseAt: number | undefined
  endedAt: number | undefined
  outcome: Outcome | undefined
  /** Why it failed or timed out. */
  errorCode: ErrorCode | undefined
  errorText: string | undefined
  /** Whether the response is a stream. */
  streaming = false
  /** Responses that went to the client, and their bytes. */
  items = 0
  bytes = 0
  /** Milliseconds between the last two responses; undefined: there were fewer. */
  lastGap: number | undefined
  /** Whether the client's connection is full, so that the handler is held back. */
  isHeldBack = false
  /** performance.now() when the worker last responded, or got the job. */
  lastSign = 0
  readonly #sink: ReplySink
  #owner: JobOwner | undefined
  #span: JobSpan | undefined
  #budget: InputBudget | undefined
  /** Bytes that the budget counts for it. */
  #heldBytes = 0
  /** The version that weights chose. */
  #servedBy: string | undefined
  #state: JobState = 'created'
  #holder: JobHolder | undefined
  #limits: JobLimits | undefined
  /** The limit of its state; the one of the whole request runs beside it. */
  #limit: TimeLimit | undefined
  /** When the stream last advanced: an item arrived, or the client read some. */
  #lastProgress = 0

  constructor(request: JobRequest, sink: ReplySink) {
    this.request = request
    this.#sink = sink
  }

  /** The model version that has it; undefined: a workflow, or none yet. */
  get version(): string | undefined {
    return this.#owner?.version
  }

  get ended(): boolean {
    return this.#state === 'ended'
  }

  /** Weights chose this version: the client is told. */
  routed(version: string): void {
    this.#servedBy = version
    this.request.sender?.servedBy?.(version)
  }

  /** It is open: `owner` hears of its end. */
  opened(owner: JobOwner): void {
    this.#owner = owner
    this.#span = owner.trace?.(this)
  }

  /** Its queue refused it, so it was never open. */
  refused(code: ErrorCode): void {
    this.#span?.refused(code)
    this.#owner = this.#span = undefined
    this.#release()
  }

  /**
   * Counts input for it, until a worker has it or the job ends.
   * @param budget default: the one that counts for it already
   * @throws ServeError QUEUE_FULL; nothing more counts then
   */
  hold(bytes: number, budget = this.#budget): void {
    if (this.ended) return
    budget?.take(bytes, this.#heldBytes)
    this.#budget = budget
    this.#heldBytes += bytes
  }

  /** A queue has accepted the job. */
  queued(holder: JobHolder, limits: JobLimits): void {
    this.#move('queued')
    this.#holder = holder
    this.#limits = limits
    limits.total.begin(this)
  }

  /** No worker was free, so the queue time limit starts. */
  waits(): void {
    this.#beginLimit(this.#limits?.queue)
  }

  /** Another holder has the queued job now. */
  heldBy(holder: JobHolder): void {
    this.#holder = holder
  }

  /**
   * A worker has the job and its input. The input is released here, because a stream may stay open for long.
   */
  started(holder: JobHolder, now = performance.now()): void {
    this.#move('assigned')
    this.request.parts = NO_PARTS
    this.#release()
    this.#holder = holder
    this.startedAt = this.lastSign = now
    this.#beginLimit(this.#limits?.firstResponse)
  }

  /**
   * Handles one response of the worker. False: the client's connection is full, and the holder will get
   * `drained`.
   */
  respond(response: JobResponse): boolean {
    if (this.ended) return true
    try {
      return this.#respond(response)
    } catch (thrown) {
      return this.#sinkFailed(thrown)
    }
  }

  #respond(response: JobResponse): boolean {
    const first = this.firstResponseAt === undefined
    const now = performance.now()
    if (first) {
      this.firstResponseAt = now
      if (this.#servedBy !== undefined)
        response.headers = { ...response.headers, [VERSION_HEADER]: this.#servedBy }
    }
    this.#count(response.body.byteLength, now)
    if (response.more === undefined || (first && !response.more)) {
      this.#end('finished', now)
      this.#sink.whole(response, response.body)
      return true
    }
    if (first) {
      this.#move('streaming')
      this.streaming = true
      this.#beginLimit(this.#limits?.gap)
      this.#sink.open(response)
    }
    const room = this.#write(response.body, 0, response.body.byteLength)
    if (!response.more) this.finish()
    return room
  }

  #count(bytes: number, now: number): void {
    if (this.items > 0) {
      this.lastGap = now - this.lastSign
      this.#owner?.gaps?.observe(this.lastGap / 1000)
    }
    this.lastSign = this.#lastProgress = now
    this.items += 1
    this.bytes += bytes
  }

  #write(chunk: Uint8Array, from: number, to: number): boolean {
    const room = this.#sink.write(chunk, from, to)
    if (!room) this.isHeldBack = true
    return room
  }

  /** The handler works on it, though it has sent nothing: its time limits begin anew. */
  alive(): void {
    this.#lastProgress = performance.now()
    if (this.#state === 'assigned') this.#beginLimit(this.#limit)
  }

  /** Ends the stream; its last item came before. */
  finish(): void {
    if (this.ended) return
    this.#end('finished')
    try {
      this.#sink.close()
    } catch (thrown) {
      this.#sinkFailed(thrown)
    }
  }

  /**
   * An item of a running stream: `respond` without the work for first and last items. `arrivedAt` is a
   * performance.now(); items that arrived together need only one.
   */
  item(chunk: Uint8Array, from: number, to: number, arrivedAt = performance.now()): boolean {
    if (this.ended) return true
    // The first item read the clock itself, after its chunk had arrived.
    this.#count(to - from, Math.max(arrivedAt, this.lastSign))
    try {
      return this.#write(chunk, from, to)
    } catch (thrown) {
      return this.#sinkFailed(thrown)
    }
  }

  /**
   * The sink threw. Responses are read from the worker's socket, so the exception would otherwise fail every
   * request of that worker.
   */
  #sinkFailed(thrown: unknown): true {
    const error = ServeError.from(thrown)
    if (!this.ended) this.abort(error, 'failed')
    else this.#refuse(error)
    return true
  }

  /** Fails the job: the client gets the error in its dialect. */
  fail(error: ServeError): void {
    if (this.ended) return
    this.#fail(error, OUTCOME_OF[error.code] ?? 'failed')
    this.#refuse(error)
  }

  #fail(error: ServeError, outcome: Outcome): void {
    this.errorCode = error.code
    this.errorText = error.said ?? error.message
    this.#end(outcome)
  }

  /** The error says whether the handler may have begun: APIs choose their status codes by it. */
  #refuse(error: ServeError): void {
    const isRepeatable = this.startedAt === undefined || this.#owner?.idempotent === true
    this.#sink.fail(isRepeatable ? error : error.asBegun())
  }

  /** The client disconnected or its deadline passed: there is no response, and the work is stopped. */
  cancel(reason: AbandonReason = 'client left'): void {
    if (this.ended) return
    this.#end(reason === 'deadline' || reason === 'timeout' ? 'timed_out' : 'cancelled')
    this.#holder?.abandon(this, reason)
  }

  /** The job cannot continue: the client gets the error, and the work is stopped. */
  abort(error: ServeError, reason: AbandonReason): void {
    if (this.ended) return
    this.fail(error)
    this.#holder?.abandon(this, reason)
  }

  /** The client's connection has room again. */
  drained(): void {
    if (this.ended) return
    this.isHeldBack = false
    this.#lastProgress = performance.now()
    this.#holder?.drained?.(this)
  }

  /** The limit takes the place of the one that runs. */
  #beginLimit(limit: TimeLimit | undefined): void {
    if (limit !== this.#limit) this.#limit?.end(this)
    this.#limit = limit
    limit?.begin(this)
  }

  /** Items only record their time: the limit for gaps counts from the last one when it expires. */
  expired(limit: TimeLimit): void {
    if (this.ended) return
    const { code, what, key, ms } = limit
    if (limit === this.#limits?.gap && this.#lastProgress + ms > performance.now()) {
      limit.begin(this, this.#lastProgress)
      return
    }
    const stall = this.#stall
    const error = new ServeError(
      stall === undefined ? code : 'CLIENT_STALLED',
      `Timed out after ${ms / 1000} s: ${stall ?? what} (${key})`,
    )
    this.#fail(error, stall === undefined ? 'timed_out' : 'client_stalled')
    this.#holder?.abandon(this, 'timeout')
    this.#refuse(error)
  }

  /** What the client did not do, so that the handler waits for it; undefined: the handler is not done. */
  get #stall(): string | undefined {
    if (this.isHeldBack) return 'the client did not read its answer'
    return this.request.feed?.waitsForClient === true ? 'the client sent no further input' : undefined
  }

  #move(to: JobState): void {
    if (!NEXT[this.#state].includes(to)) throw new Error(`A job that is ${this.#state} cannot become ${to}`)
    this.#state = to
  }

  #end(outcome: Outcome, now = performance.now()): void {
    this.#move('ended')
    this.outcome = outcome
    this.endedAt = now
    this.#beginLimit(undefined)
    this.#limits?.total.end(this)
    this.#release()
    this.#owner?.ended(this)
    this.#span?.end(this)
  }

  #release(): void {
    this.#budget?.give(this.#heldBytes)
    this.#heldBytes = 0
  }
}
