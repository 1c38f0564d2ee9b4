import { type Context, type Span, SpanStatusCode, type Tracer } from '@opentelemetry/api'
import type { ErrorCode } from '../../../common/errors.ts'
import type { JobSpan, TracedJob } from './tracing.ts'

/**
 * The span of a job, with one below it for each of its phases: `queue` until a worker gets it, `worker` until
 * its end, and for a stream `stream` from its first item on. Their times are those that the job has noted.
 */
export class OtelJobSpan implements JobSpan {
  readonly #tracer: Tracer
  readonly #span: Span
  readonly #context: Context

  /** @param context has the span, as the parent of its phases */
  constructor(tracer: Tracer, span: Span, context: Context) {
    this.#tracer = tracer
    this.#span = span
    this.#context = context
  }

  end(job: TracedJob): void {
    const span = this.#span
    if (!span.isRecording()) return
    const now = performance.now()
    this.#phases(job, now)
    span.setAttributes({
      'torchserve_ts.outcome': job.outcome ?? 'finished',
      'torchserve_ts.stream': job.streaming,
    })
    if (job.firstResponseAt !== undefined) span.addEvent('first response', job.firstResponseAt)
    if (job.outcome === 'failed' || job.outcome === 'timed_out') this.#fail(job.errorCode)
    span.end(now)
  }

  refused(code: ErrorCode): void {
    this.#fail(code)
    this.#span.end()
  }

  #phases({ createdAt, startedAt, firstResponseAt, streaming }: TracedJob, end: number): void {
    this.#phase('queue', createdAt, startedAt ?? end)
    if (startedAt === undefined) return
    this.#phase('worker', startedAt, end)
    if (streaming && firstResponseAt !== undefined) this.#phase('stream', firstResponseAt, end)
  }

  #phase(name: string, startTime: number, end: number): void {
    this.#tracer.startSpan(name, { startTime }, this.#context).end(end)
  }

  #fail(code: ErrorCode | undefined): void {
    if (code !== undefined) this.#span.setAttribute('error.type', code)
    this.#span.setStatus({ code: SpanStatusCode.ERROR })
  }
}
