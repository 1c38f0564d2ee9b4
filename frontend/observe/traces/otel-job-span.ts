import type { ErrorCode } from '../../../common/errors.ts'
import type { RecordedSpan } from './recorded-span.ts'
import type { Spans } from './spans.ts'
import type { JobSpan, TracedJob } from './tracing.ts'

/**
 * The span of a job, with one below it for each of its phases: `queue` until a worker gets it, `worker` until
 * its end, and for a stream `stream` from its first item on. Their times are those that the job has noted.
 */
export class OtelJobSpan implements JobSpan {
  readonly #spans: Spans
  readonly #span: RecordedSpan

  constructor(spans: Spans, span: RecordedSpan) {
    this.#spans = spans
    this.#span = span
  }

  end(job: TracedJob): void {
    const span = this.#span
    const now = performance.now()
    this.#phases(job, now)
    const outcome = job.outcome ?? 'finished'
    span.set(['torchserve_ts.outcome', outcome, 'torchserve_ts.stream', job.streaming])
    if (job.firstResponseAt !== undefined) span.event('first response', job.firstResponseAt)
    if (outcome === 'failed' || outcome === 'timed_out') this.#fail(job.errorCode)
    span.ended(now)
  }

  refused(code: ErrorCode): void {
    this.#fail(code)
    this.#span.ended(performance.now())
  }

  #phases({ createdAt, startedAt, firstResponseAt, streaming }: TracedJob, end: number): void {
    const spans = this.#spans
    const span = this.#span
    spans.phase('queue', span, createdAt, startedAt ?? end)
    if (startedAt === undefined) return
    spans.phase('worker', span, startedAt, end)
    if (streaming && firstResponseAt !== undefined) spans.phase('stream', span, firstResponseAt, end)
  }

  #fail(code: ErrorCode | undefined): void {
    if (code !== undefined) this.#span.set(['error.type', code])
    this.#span.failed = true
  }
}
