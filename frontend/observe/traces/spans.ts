import { OtelJobSpan } from './otel-job-span.ts'
import { RecordedSpan, type RecordedTrace, type Recording } from './recorded-span.ts'
import type { RandomWords, SpanId } from './span-ids.ts'
import { SpanNames } from './span-names.ts'
import type { TraceHeaders } from './trace-headers.ts'
import type { JobSpan, TracedJob, TracedModel } from './tracing.ts'

/** Begins the spans that are recorded. Times are performance.now() milliseconds. */
export class Spans {
  readonly names = new SpanNames()
  readonly #recording: Recording
  readonly #random: RandomWords
  readonly #headers: TraceHeaders

  constructor(recording: Recording, random: RandomWords, headers: TraceHeaders) {
    this.#recording = recording
    this.#random = random
    this.#headers = headers
  }

  /** @param parent of the client; undefined: the trace begins here */
  request(name: string, trace: RecordedTrace, parent: SpanId | undefined, start: number): RecordedSpan {
    return new RecordedSpan(this.#recording, trace, name, this.#random.span(), parent, start, true)
  }

  /** The handler's headers name this span. */
  job(job: TracedJob, model: TracedModel, trace: RecordedTrace, parent: SpanId | undefined): JobSpan {
    const { request } = job
    const name = this.names.of('model', model.name)
    const span = new RecordedSpan(this.#recording, trace, name, this.#random.span(), parent, job.createdAt)
    span.set([
      'torchserve_ts.model.name',
      model.name,
      'torchserve_ts.model.version',
      model.version,
      'torchserve_ts.request.id',
      request.requestId,
      'torchserve_ts.handler.method',
      request.method,
    ])
    request.headers += this.#headers.lines(span.traceparent, trace.client)
    return new OtelJobSpan(this, span)
  }

  /** A span of known times below another one. */
  phase(name: string, { trace, spanId }: RecordedSpan, start: number, end: number): void {
    new RecordedSpan(this.#recording, trace, name, this.#random.span(), spanId, start).ended(end)
  }
}
