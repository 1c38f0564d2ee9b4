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
    this.#below = { ...place, parent: span.spanContext() }
  }

  get traceId(): string {
    return this.#below.traceId
  }

  get traceparent(): string {
    return traceparentOf(this.#span.spanContext())
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
    if (failed) this.#span.fail()
    this.#span.end(this.#below.epoch + performance.now())
  }
}
