import type { Context, SpanContext } from '@opentelemetry/api'
import { type TraceHeaders, traceparentOf } from './trace-headers.ts'
import type { JobSpan, RequestSpan, TracedJob } from './tracing.ts'

/** Of a job that is not recorded. */
export const NO_JOB_SPAN: JobSpan = { end: () => undefined, refused: () => undefined }

/**
 * The context of a request that is not recorded. The handler gets it all the same: without it, its own
 * sampler would begin a trace, and decide again.
 */
export class UnsampledSpan implements RequestSpan {
  readonly recording = false
  readonly traceparent: string
  readonly #context: SpanContext
  readonly #parent: Context
  readonly #headers: TraceHeaders

  constructor(context: SpanContext, parent: Context, headers: TraceHeaders) {
    this.#context = context
    this.traceparent = traceparentOf(context)
    this.#parent = parent
    this.#headers = headers
  }

  get traceId(): string {
    return this.#context.traceId
  }

  job({ request }: TracedJob): JobSpan {
    request.headers += this.#headers.lines(this.#context, this.traceparent, this.#parent)
    return NO_JOB_SPAN
  }

  set(): void {
    // Nobody sees it.
  }

  rename(): void {
    // Nobody sees it.
  }

  end(): void {
    // Nobody sees it.
  }
}
