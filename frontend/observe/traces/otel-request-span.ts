import type { RecordedSpan } from './recorded-span.ts'
import type { Spans } from './spans.ts'
import type { JobSpan, RequestSpan, SpanAttributes, TracedJob, TracedModel } from './tracing.ts'

/** The span of a request that is recorded. */
export class OtelRequestSpan implements RequestSpan {
  readonly recording = true
  readonly known = true
  readonly #spans: Spans
  readonly #span: RecordedSpan

  constructor(spans: Spans, span: RecordedSpan) {
    this.#spans = spans
    this.#span = span
  }

  get traceId(): string {
    return this.#span.traceId.text
  }

  get traceparent(): string {
    return this.#span.traceparent
  }

  job(job: TracedJob, model: TracedModel): JobSpan {
    const { trace, spanId } = this.#span
    return this.#spans.job(job, model, trace, spanId)
  }

  set(attributes: SpanAttributes): void {
    this.#span.set(attributes)
  }

  rename(method: string, route: string): void {
    this.#span.name = this.#spans.names.of(method, route)
  }

  end(failed: boolean): void {
    this.#span.failed = failed
    this.#span.ended(performance.now())
  }
}
