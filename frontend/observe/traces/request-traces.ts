import {
  type Context,
  isSpanContextValid,
  ROOT_CONTEXT,
  type SpanContext,
  type TextMapPropagator,
  trace,
} from '@opentelemetry/api'
import { OtelRequestSpan } from './otel-request-span.ts'
import type { SpanOutlet } from './recorded-span.ts'
import { RootTraces } from './root-traces.ts'
import { type Sampler, samplerOf } from './sampler.ts'
import { RandomWords, SpanId, TraceId } from './span-ids.ts'
import { SpanLimits } from './span-limits.ts'
import { Spans } from './spans.ts'
import type { Environment } from './start.ts'
import { TraceHeaders, traceparentOf } from './trace-headers.ts'
import type { HeaderCarrier, JobSpan, RequestSpan, TracedJob, TracedModel } from './tracing.ts'
import { UnsampledSpan } from './unsampled-span.ts'

/** Makes the spans of requests, and of jobs that no client asked for, below those that clients name. */
export class RequestTraces {
  readonly #random = new RandomWords()
  readonly #sampler: Sampler
  readonly #roots: RootTraces
  readonly #headers: TraceHeaders
  readonly #spans: Spans

  /** @param outlet gets those that are recorded, once they have ended */
  constructor(env: Environment, propagator: TextMapPropagator, outlet: SpanOutlet) {
    this.#sampler = samplerOf(env)
    this.#roots = new RootTraces(this.#random, this.#sampler.rootBound)
    this.#headers = new TraceHeaders(propagator)
    this.#spans = new Spans({ limits: new SpanLimits(env), outlet }, this.#random, this.#headers)
  }

  request(name: string, headers: HeaderCarrier): RequestSpan {
    const client = this.#headers.take(headers)
    const parent = parentIn(client)
    if (parent !== undefined) return this.#below(parent, client, name)
    return this.#roots.next()
      ? this.#recorded(name, this.#roots.id, client, undefined)
      : this.#unsampledRoot(client)
  }

  job(job: TracedJob, model: TracedModel): JobSpan {
    const roots = this.#roots
    if (!roots.next()) return this.#unsampledRoot(ROOT_CONTEXT).job(job)
    const epoch = Date.now() - performance.now()
    const own = { id: roots.id, state: undefined, client: ROOT_CONTEXT, epoch }
    return this.#spans.job(job, model, own, undefined)
  }

  #below(parent: SpanContext, client: Context, name: string): RequestSpan {
    if (this.#sampler.samples(parent)) return this.#recorded(name, TraceId.of(parent.traceId), client, parent)
    const traceparent = traceparentOf(parent.traceId, this.#random.span().text, false)
    return new UnsampledSpan(traceparent, this.#headers.lines(traceparent, client), true)
  }

  #recorded(name: string, id: TraceId, client: Context, parent: SpanContext | undefined): RequestSpan {
    const now = performance.now()
    const own = { id, state: parent?.traceState, client, epoch: Date.now() - now }
    const parentId = parent && SpanId.of(parent.spanId)
    return new OtelRequestSpan(this.#spans, this.#spans.request(name, own, parentId, now))
  }

  #unsampledRoot(client: Context): UnsampledSpan {
    const { traceparent, line } = this.#roots
    const isPlain = this.#headers.isPlain(client)
    return new UnsampledSpan(traceparent, isPlain ? line : this.#headers.lines(traceparent, client), false)
  }
}

/** The span of the client, if it is a valid one. */
function parentIn(client: Context): SpanContext | undefined {
  if (client === ROOT_CONTEXT) return undefined
  const parent = trace.getSpanContext(client)
  return parent !== undefined && isSpanContextValid(parent) ? parent : undefined
}
