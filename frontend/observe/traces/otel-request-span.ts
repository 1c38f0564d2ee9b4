import type { RecordedSpan } from './recorded-span.ts'
import type { Place, Spans } from './spans.ts'
import { traceparentOf } from './trace-headers.ts'
import type { JobSpan, RequestSpan, SpanAttributes, TracedJob, TracedModel } from './tracing.ts'

/** The span of a request that is recorded. */
export class OtelRequestSpan implements RequestSpan {
  readonly recording = true
  readonly #spans: Spans
  readonly #span: RecordedSpan
  /** Of the spans below it. */
  readonly #below: Place

  constructor(spans: Spans, span: RecordedSpan, place: Place) {
    this.#spans = spans
    this.#span = span
    this.#below = { ...place, parent: span.context }
  }

  get traceId(): string {
    return this.#below.traceId
  }

  get traceparent(): string {
    return traceparentOf(this.#span.context)
  }

  job(job: TracedJob, model: TracedModel): JobSpan {
    return this.#spans.job(job, model, this.#below)
  }

  set(attributes: SpanAttributes): void {
    this.#span.set(attributes)
  }

  rename(name: string): void {
    this.#span.name = name
  }

  end(failed: boolean): void {
    this.#span.failed = failed
    this.#span.ended(this.#below.epoch + performance.now())
  }
}
