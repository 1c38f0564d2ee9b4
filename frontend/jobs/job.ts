import { type ErrorCode, ServeError } from '../../common/errors.ts'
import type { HandlerMethod } from '../../common/handler-methods.ts'
import type { InputPart } from '../../common/input-part.ts'
import type { Distribution } from '../observe/metrics/distribution.ts'
import type { Outcome } from '../observe/metrics/tally.ts'
import type { InputFeed } from './input-feed.ts'
import type { ReplyHead, ReplySink } from './reply-sink.ts'
import { type Limited, TimeLimit } from './time-limit.ts'

export type { InputPart }

/** What a client asked for, whatever protocol it spoke. */
export interface InferenceRequest {
  /** x-request-id: a uuid that the server chose. */
  requestId: string
  modelName: string
  /** Absent: the default version. */
  modelVersion?: string
  /** The method of the handler that the request wants. Beyond `handle`, `explain` and `describe` only one that the handler has. */
  method: HandlerMethod
  /** The client's headers, names in its letter case; the text of common/header-lines.ts. They mean nothing to the server. */
  headers: string
  /** What followed the version in the path: the handler sees it as the header `url_path`, as in TorchServe. Absent: no such header. */
  urlPath?: string
  /** The handler sees the header `explain` also when it is not to explain, as TorchServe's paths do that have a counterpart. Default false. */
  tellsExplain?: boolean
  parts: InputPart[]
  /** Milliseconds since the epoch after which the client no longer waits. */
  deadline?: number
  /** It shares no batch with others. */
  alone?: boolean
  /** Further inputs follow. Only for handlers that take them (`predictStream`). */
  feed?: InputFeed
}

/** One response of the worker to one job. */
export interface JobResponse extends ReplyHead {
  body: Uint8Array
  /** Absent: the whole answer. `true`: more follows. `false`: the last item of a stream. */
  more?: boolean
}

/** Limits on the time of one job, each in milliseconds; 0 switches one off. */
export interface JobTimeouts {
  queue: number
  firstResponse: number
  gap: number
  total: number
  /** The setting that `total` comes from, for the client. Default `requestTimeout`. */
  totalKey?: string
}

/** The limits of all jobs of one model. */
export interface JobLimits {
  readonly queue: TimeLimit
  readonly firstResponse: TimeLimit
  readonly gap: number
  readonly total: number
  readonly totalKey: string
}

export function jobLimits(timeouts: JobTimeouts): JobLimits {
  const { queue, firstResponse, gap, total, totalKey = 'requestTimeout' } = timeouts
  return {
    queue: new TimeLimit(queue, 'QUEUE_TIMEOUT', 'waited too long for a worker', 'queueTimeout'),
    firstResponse: new TimeLimit(firstResponse, 'RESPONSE_TIMEOUT', 'no response', 'firstResponseTimeout'),
    gap,
    total,
    totalKey,
  }
}

/** How a job ended. The three ways look different to its client (design, section 2). */
export type JobOutcome = Outcome

/** Why a job that still has work going on is no longer wanted. */
export type AbandonReason = 'client left' | 'deadline' | 'timeout' | 'shutdown' | 'failed'

/** Who has the job now: the queue, later a worker. */
export interface JobHolder {
  /** The job has ended though its work has not: drop it or stop it. */
  abandon(job: Job, reason: AbandonReason): void
  /** The client's connection has room again after `respond` returned false. */
  drained(job: Job): void
}

const NO_PARTS: InputPart[] = []

const NO_HOLDER: JobHolder = { abandon: () => undefined, drained: () => undefined }

/**
 * One request on its way: from the queue to a worker, and its responses back to the client's sink. Guards the stream
 * contract: the first response decides the head, there is exactly one end, and each time limit is its own.
 */
export class Job implements Limited {
  readonly request: InferenceRequest
  readonly createdAt = performance.now()
  /** When a worker got it; undefined while queued. */
  startedAt: number | undefined
  firstResponseAt: number | undefined
  outcome: JobOutcome | undefined
  /** Whether the answer came (or comes) as a stream. */
  streaming = false
  /** Where the gaps between its responses are observed, in seconds. */
  gaps: Distribution | undefined
  /** Called once, at the end of the job. */
  onEnd: ((job: Job) => void) | undefined

  limit: TimeLimit | undefined
  limitEnd = 0
  limitBefore: Limited | undefined
  limitAfter: Limited | undefined
  readonly #sink: ReplySink
  #holder = NO_HOLDER
  #limits: JobLimits | undefined
  #gapTimer: NodeJS.Timeout | undefined
  #totalTimer: NodeJS.Timeout | undefined
  /** When the stream last went on: an item came, or the client took some. */
  #lastProgress = 0
  #lastResponse = 0

  constructor(request: InferenceRequest, sink: ReplySink) {
    this.request = request
    this.#sink = sink
  }

  get ended(): boolean {
    return this.outcome !== undefined
  }

  /** performance.now() when the worker last gave a sign while somebody waited: its last response, or that it got the job. */
  get lastSign(): number {
    return this.firstResponseAt === undefined ? (this.startedAt ?? this.createdAt) : this.#lastResponse
  }

  /** A queue has taken the job. */
  queued(holder: JobHolder, limits: JobLimits): void {
    this.#holder = holder
    this.#limits = limits
    if (limits.total > 0) {
      this.#totalTimer = setTimeout(() => {
        this.#timeout('REQUEST_TIMEOUT', 'the whole request took too long', limits.totalKey, limits.total)
      }, limits.total)
    }
  }

  /** No worker was free for it: its waiting time is limited from now on. */
  waits(): void {
    this.#limits?.queue.begin(this)
  }

  /** A worker has taken the job and has been sent its input, which is let go: a stream may stay open for long. */
  started(holder: JobHolder): void {
    this.request.parts = NO_PARTS
    this.#holder = holder
    this.startedAt = performance.now()
    this.limit?.end(this)
    this.#limits?.firstResponse.begin(this)
  }

  /** One response from the worker. False: the client's connection is full, the holder will hear `drained`. */
  respond(response: JobResponse): boolean {
    if (this.outcome !== undefined) return true
    try {
      return this.#respond(response)
    } catch (thrown) {
      return this.#broke(thrown)
    }
  }

  #respond(response: JobResponse): boolean {
    const first = this.firstResponseAt === undefined
    const now = performance.now()
    if (first) this.firstResponseAt = now
    else this.gaps?.observe((now - this.#lastResponse) / 1000)
    this.#lastResponse = this.#lastProgress = now
    if (response.more === undefined || (first && !response.more)) {
      this.#end('finished')
      this.#sink.whole(response, response.body)
      return true
    }
    if (first) {
      this.streaming = true
      this.limit?.end(this)
      this.#limitGap(this.#limits?.gap ?? 0)
      this.#sink.open(response)
    }
    const room = this.#sink.write(response.body, 0, response.body.byteLength)
    if (!response.more) this.finish()
    return room
  }

  /** The stream that has begun is at its end; its last item came before. */
  finish(): void {
    if (this.outcome !== undefined) return
    this.#end('finished')
    try {
      this.#sink.close()
    } catch (thrown) {
      this.#broke(thrown)
    }
  }

  /** An item of a stream that has begun and goes on: `respond` without all that only first and last items need. */
  item(chunk: Uint8Array, from: number, to: number): boolean {
    if (this.outcome !== undefined) return true
    const now = performance.now()
    this.gaps?.observe((now - this.#lastResponse) / 1000)
    this.#lastResponse = this.#lastProgress = now
    try {
      return this.#sink.write(chunk, from, to)
    } catch (thrown) {
      return this.#broke(thrown)
    }
  }

  /**
   * The sink threw. Answers are read from the worker's socket: going on, the exception would fail all
   * requests of that worker.
   */
  #broke(thrown: unknown): true {
    const error = ServeError.from(thrown)
    if (this.outcome === undefined) this.abort(error, 'failed')
    else this.#sink.fail(error)
    return true
  }

  /** The job failed: the client gets the error in its own way. */
  fail(error: ServeError): void {
    if (this.outcome !== undefined) return
    this.#end(error.code === 'CANCELLED' || error.code === 'SHUTTING_DOWN' ? 'cancelled' : 'failed')
    this.#sink.fail(error)
  }

  /** The client is gone (or its deadline passed): nobody hears an answer, and the work is stopped. */
  cancel(reason: AbandonReason = 'client left'): void {
    if (this.outcome !== undefined) return
    this.#end(reason === 'deadline' || reason === 'timeout' ? 'timed_out' : 'cancelled')
    this.#holder.abandon(this, reason)
  }

  /** The job cannot go on: the client hears why, and the work is stopped. */
  abort(error: ServeError, reason: AbandonReason): void {
    if (this.outcome !== undefined) return
    this.fail(error)
    this.#holder.abandon(this, reason)
  }

  /** The client's connection has room again. */
  drained(): void {
    if (this.outcome !== undefined) return
    this.#lastProgress = performance.now()
    this.#holder.drained(this)
  }

  expired({ code, what, key, ms }: TimeLimit): void {
    this.#timeout(code, what, key, ms)
  }

  /** Items do not touch the timer, they only note their time: when it goes off, it is set again for what is left. */
  #limitGap(ms: number): void {
    if (ms === 0) return
    const check = (): void => {
      const left = this.#lastProgress + ms - performance.now()
      if (left > 0) this.#gapTimer = setTimeout(check, Math.ceil(left))
      else this.#timeout('RESPONSE_TIMEOUT', 'no further response', 'gapTimeout', ms)
    }
    this.#gapTimer = setTimeout(check, ms)
  }

  #timeout(code: ErrorCode, what: string, key: string, ms: number): void {
    if (this.outcome !== undefined) return
    this.#end('timed_out')
    this.#holder.abandon(this, 'timeout')
    this.#sink.fail(new ServeError(code, `Timed out after ${ms / 1000} s: ${what} (${key})`))
  }

  #end(outcome: JobOutcome): void {
    this.outcome = outcome
    this.limit?.end(this)
    if (this.#gapTimer !== undefined) clearTimeout(this.#gapTimer)
    if (this.#totalTimer !== undefined) clearTimeout(this.#totalTimer)
    this.onEnd?.(this)
  }
}
