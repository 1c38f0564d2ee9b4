import {
  type Context,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Tracer,
} from '@opentelemetry/api'
import type { ErrorCode } from '../../../common/errors.ts'
import { type TraceHeaders, traceparentOf } from './trace-headers.ts'
import type {
  HeaderCarrier,
  JobSpan,
  RequestSpan,
  SpanAttributes,
  TracedJob,
  TracedModel,
} from './tracing.ts'
import { UnsampledSpan } from './unsampled-span.ts'

/** Entries of an attribute that is a list. */
const MAX_ENTRIES = 128

/** What all spans of a request share. */
interface RequestTrace {
  /** The client's context, which goes on to the handler. */
  readonly client: Context
  /** Milliseconds from performance.now() to the epoch. */
  readonly epoch: number
}

/** Begins spans of requests and jobs, with the SDK's tracer. Its sampler decides which are recorded. */
export class OtelSpans {
  readonly #tracer: Tracer
  readonly #headers: TraceHeaders

  constructor(tracer: Tracer, headers: TraceHeaders) {
    this.#tracer = tracer
    this.#headers = headers
  }

  /** Below the span that the headers name. They name none afterwards. */
  request(name: string, headers: HeaderCarrier): RequestSpan {
    const client = this.#headers.take(headers)
    const now = performance.now()
    const epoch = Date.now() - now
    const span = this.#tracer.startSpan(name, { kind: SpanKind.SERVER, startTime: epoch + now }, client)
    return span.isRecording()
      ? new OtelRequestSpan(this, span, { client, epoch })
      : this.#unsampled(span, client)
  }

  /**
   * The handler's headers name this span.
   * @param parent of the request; absent: no client asked for the job
   */
  job(
    job: TracedJob,
    model: TracedModel,
    parent: Context = ROOT_CONTEXT,
    { client, epoch }: RequestTrace = { client: ROOT_CONTEXT, epoch: Date.now() - performance.now() },
  ): JobSpan {
    const span = this.#begin(`model ${model.name}`, epoch + job.createdAt, parent)
    if (!span.isRecording()) return this.#unsampled(span, client).job(job)
    const { request } = job
    span.setAttributes({
      'torchserve_ts.model.name': model.name,
      'torchserve_ts.model.version': model.version,
      'torchserve_ts.request.id': request.requestId,
      'torchserve_ts.handler.method': request.method,
    })
    request.headers += this.#headers.lines(traceparentIn(span), client)
    const phase = (name: string, start: number, end: number): void =>
      this.#begin(name, epoch + start, trace.setSpan(ROOT_CONTEXT, span)).end(epoch + end)
    return new OtelJobSpan(span, epoch, phase)
  }

  #begin(name: string, startTime: number, parent: Context): Span {
    return this.#tracer.startSpan(name, { startTime }, parent)
  }

  #unsampled(span: Span, client: Context): UnsampledSpan {
    const traceparent = traceparentIn(span)
    const parent = trace.getSpanContext(client)
    const known = parent !== undefined && isSpanContextValid(parent)
    return new UnsampledSpan(traceparent, this.#headers.lines(traceparent, client), known)
  }
}

/** The span of a request that is recorded. */
class OtelRequestSpan implements RequestSpan {
  readonly recording = true
  readonly known = true
  readonly #spans: OtelSpans
  readonly #span: Span
  readonly #trace: RequestTrace

  constructor(spans: OtelSpans, span: Span, requestTrace: RequestTrace) {
    this.#spans = spans
    this.#span = span
    this.#trace = requestTrace
  }

  get traceId(): string {
    return this.#span.spanContext().traceId
  }

  get traceparent(): string {
    return traceparentIn(this.#span)
  }

  job(job: TracedJob, model: TracedModel): JobSpan {
    return this.#spans.job(job, model, trace.setSpan(this.#trace.client, this.#span), this.#trace)
  }

  set(attributes: SpanAttributes): void {
    // The SDK reports each attribute that comes after the end.
    if (!this.#span.isRecording()) return
    for (let i = 0; i < attributes.length; i += 2) {
      const value = attributes[i + 1]
      if (value === undefined) continue
      const cut = Array.isArray(value) ? value.slice(0, MAX_ENTRIES) : value
      this.#span.setAttribute(attributes[i] as string, cut)
    }
  }

  rename(method: string, route: string): void {
    if (this.#span.isRecording()) this.#span.updateName(`${method} ${route}`)
  }

  end(failed: boolean): void {
    if (failed) this.#span.setStatus({ code: SpanStatusCode.ERROR })
    this.#span.end(this.#trace.epoch + performance.now())
  }
}

/**
 * The span of a job, with one below it for each of its phases: `queue` until a worker gets it, `worker` until
 * its end, and for a stream `stream` from its first item on. The job has noted their times.
 */
class OtelJobSpan implements JobSpan {
  readonly #span: Span
  readonly #epoch: number
  readonly #phase: (name: string, start: number, end: number) => void

  constructor(span: Span, epoch: number, phase: (name: string, start: number, end: number) => void) {
    this.#span = span
    this.#epoch = epoch
    this.#phase = phase
  }

  end({ createdAt, startedAt, firstResponseAt, streaming, outcome, errorCode }: TracedJob): void {
    const span = this.#span
    const now = performance.now()
    this.#phase('queue', createdAt, startedAt ?? now)
    if (startedAt !== undefined) this.#phase('worker', startedAt, now)
    if (startedAt !== undefined && streaming && firstResponseAt !== undefined)
      this.#phase('stream', firstResponseAt, now)
    span.setAttributes({
      'torchserve_ts.outcome': outcome ?? 'finished',
      'torchserve_ts.stream': streaming,
    })
    if (firstResponseAt !== undefined) span.addEvent('first response', this.#epoch + firstResponseAt)
    if (outcome === 'failed' || outcome === 'timed_out') this.#fail(errorCode)
    span.end(this.#epoch + now)
  }

  refused(code: ErrorCode): void {
    this.#fail(code)
    this.#span.end(this.#epoch + performance.now())
  }

  #fail(code: ErrorCode | undefined): void {
    if (code !== undefined) this.#span.setAttribute('error.type', code)
    this.#span.setStatus({ code: SpanStatusCode.ERROR })
  }
}

function traceparentIn(span: Span): string {
  const { traceId, spanId, traceFlags } = span.spanContext()
  return traceparentOf(traceId, spanId, (traceFlags & TraceFlags.SAMPLED) !== 0)
}
