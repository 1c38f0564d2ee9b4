import type { ErrorCode } from '../../../common/errors.ts'
import type { RecordedSpan } from './recorded-span.ts'
import type { Place, Spans } from './spans.ts'
import type { JobSpan, TracedJob } from './tracing.ts'

/**
 * The span of a job, with one below it for each of its phases: `queue` until a worker gets it, `worker` until
 * its end, and for a stream `stream` from its first item on. Their times are those that the job has noted.
 */
export class OtelJobSpan implements JobSpan {
  readonly #spans: Spans
  readonly #span: RecordedSpan
  /** Of its phases. */
  readonly #below: Place

  constructor(spans: Spans, span: RecordedSpan, below: Place) {
    this.#spans = spans
    this.#span = span
    this.#below = below
  }

  end(job: TracedJob): void {
    const span = this.#span
    const now = performance.now()
    this.#phases(job, now)
    span.set({ 'torchserve_ts.outcome': job.outcome ?? 'finished', 'torchserve_ts.stream': job.streaming })
    if (job.firstResponseAt !== undefined)
      span.event('first response', this.#below.epoch + job.firstResponseAt)
    if (job.outcome === 'failed' || job.outcome === 'timed_out') this.#fail(job.errorCode)
    span.ended(this.#below.epoch + now)
  }

  refused(code: ErrorCode): void {
    this.#fail(code)
    this.#span.ended(this.#below.epoch + performance.now())
  }

  #phases({ createdAt, startedAt, firstResponseAt, streaming }: TracedJob, end: number): void {
    const spans = this.#spans
    const below = this.#below
    spans.phase('queue', below, createdAt, startedAt ?? end)
    if (startedAt === undefined) return
    spans.phase('worker', below, startedAt, end)
    if (streaming && firstResponseAt !== undefined) spans.phase('stream', below, firstResponseAt, end)
  }

  #fail(code: ErrorCode | undefined): void {
    if (code !== undefined) this.#span.set({ 'error.type': code })
    this.#span.failed = true
  }
}
