import { type Context, type SpanContext, TraceFlags } from '@opentelemetry/api'
import { OtelJobSpan } from './otel-job-span.ts'
import { RecordedSpan, type Recording } from './recorded-span.ts'
import type { SpanIds } from './span-ids.ts'
import { type TraceHeaders, traceparentOf } from './trace-headers.ts'
import type { JobSpan, TracedJob, TracedModel } from './tracing.ts'

/** A trace that is recorded, and what a span of it is below. */
export interface Place {
  readonly traceId: string
  /** Undefined: the trace begins here. */
  readonly parent: SpanContext | undefined
  /** What the client sent: goes on to the handler. */
  readonly client: Context
  /** Milliseconds from performance.now() to the epoch; the same for all spans of a request. */
  readonly epoch: number
}

/** Begins the spans that are recorded. */
export class Spans {
  readonly #recording: Recording
  readonly #ids: SpanIds
  readonly #headers: TraceHeaders

  constructor(recording: Recording, ids: SpanIds, headers: TraceHeaders) {
    this.#recording = recording
    this.#ids = ids
    this.#headers = headers
  }

  /** @param start performance.now() */
  request(name: string, place: Place, start: number): RecordedSpan {
    return this.#begin(name, place, start, true)
  }

  /** The handler's headers name this span. */
  job(job: TracedJob, model: TracedModel, place: Place): JobSpan {
    const { request } = job
    const span = this.#begin(`model ${model.name}`, place, job.createdAt)
    span.set({
      'torchserve_ts.model.name': model.name,
      'torchserve_ts.model.version': model.version,
      'torchserve_ts.request.id': request.requestId,
      'torchserve_ts.handler.method': request.method,
    })
    const own = span.context
    request.headers += this.#headers.lines(own, traceparentOf(own), place.client)
    return new OtelJobSpan(this, span, { ...place, parent: own })
  }

  /** A span of known times, performance.now(). */
  phase(name: string, place: Place, start: number, end: number): void {
    this.#begin(name, place, start).ended(place.epoch + end)
  }

  #begin(name: string, { traceId, parent, epoch }: Place, start: number, isServer?: boolean): RecordedSpan {
    const context = {
      traceId,
      spanId: this.#ids.span(),
      traceFlags: TraceFlags.SAMPLED,
      traceState: parent?.traceState,
    }
    return new RecordedSpan(this.#recording, name, { context, parent }, epoch + start, isServer)
  }
}
