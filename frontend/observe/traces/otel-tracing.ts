import {
  type Attributes,
  context,
  type Context,
  type ContextManager,
  diag,
  isSpanContextValid,
  type Link,
  propagation,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  trace,
  TraceFlags,
} from '@opentelemetry/api'
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources'
import { NodeSDK } from '@opentelemetry/sdk-node'
import { SamplingDecision } from '@opentelemetry/sdk-trace'
import { hostname } from 'node:os'
import { version } from '../../package-info.ts'
import type { PageFamily } from '../metrics/page.ts'
import { metricReaders } from './metric-readers.ts'
import { OtelRequestSpan } from './otel-request-span.ts'
import { PageProducer } from './page-producer.ts'
import { reportTo } from './reports.ts'
import { type Samplers, samplersOf } from './sampler.ts'
import { SpanExport } from './span-export.ts'
import { SpanId, SpanIds, TraceId } from './span-ids.ts'
import { SpanLimits } from './span-limits.ts'
import { Spans } from './spans.ts'
import type { Environment } from './start.ts'
import { takesEncoded, traceExporters } from './trace-exporters.ts'
import { TraceHeaders } from './trace-headers.ts'
import type { HeaderCarrier, JobSpan, RequestSpan, TracedJob, TracedModel, Tracing } from './tracing.ts'
import { NO_JOB_SPAN, UnsampledSpan } from './unsampled-span.ts'

/** Milliseconds for the last export. */
const CLOSE_MS = 3_000

/**
 * Spans get their parents by name, never from the active context of a call. OpenTelemetry's own manager
 * would follow it through every promise of the process, which costs much on Node 20.
 */
const NO_ACTIVE_CONTEXT: ContextManager = {
  active: () => ROOT_CONTEXT,
  with: (_context, run, self, ...args) => run.apply(self, args),
  bind: (_context, target) => target,
  enable: () => NO_ACTIVE_CONTEXT,
  disable: () => NO_ACTIVE_CONTEXT,
}

/** What a request has when its sampler is asked; no sampler of the variables looks at it. */
const NO_ATTRIBUTES: Attributes = {}
const NO_LINKS: Link[] = []

/** Tracing by OpenTelemetry's SDK, as its standard variables configure it. */
export class OtelTracing implements Tracing {
  readonly #sdk: NodeSDK
  readonly #page = new PageProducer()
  readonly #samplers: Samplers
  readonly #ids = new SpanIds()
  readonly #headers: TraceHeaders
  /** Undefined: spans go nowhere. */
  readonly #export: SpanExport | undefined
  readonly #spans: Spans | undefined

  /** @param warn gets each different report of the SDK once */
  constructor(env: Environment, warn: (message: string) => void) {
    reportTo(warn)
    const own = resourceFromAttributes({
      'service.name': 'torchserve-ts',
      'service.version': version,
      'host.name': hostname(),
      'process.pid': process.pid,
      'process.runtime.name': 'nodejs',
      'process.runtime.version': process.versions.node,
    })
    // The command line, which other detectors tell, may have secrets.
    const resource = own.merge(detectResources({ detectors: [envDetector] }))
    this.#sdk = new NodeSDK({
      instrumentations: [],
      contextManager: NO_ACTIVE_CONTEXT,
      metricReaders: metricReaders(env, this.#page),
      logRecordProcessors: [],
      spanProcessors: [],
      autoDetectResources: false,
      resource,
    })
    this.#sdk.start()
    this.#samplers = samplersOf(env)
    this.#headers = new TraceHeaders()
    const exporters = traceExporters(env)
    if (exporters.length === 0) return
    const scope = { name: 'torchserve-ts', version }
    const encoded = takesEncoded(exporters, env)
    const settings = { attributes: resource.attributes, scope, exporters, encoded }
    this.#export = new SpanExport(settings, env, warn)
    const recording = { limits: new SpanLimits(env), outlet: this.#export }
    this.#spans = new Spans(recording, this.#ids, this.#headers)
  }

  request(name: string, headers: HeaderCarrier): RequestSpan | undefined {
    const spans = this.#spans
    if (spans === undefined) return undefined
    const client = this.#headers.take(headers)
    const parent = parentIn(client)
    const id = parent === undefined ? this.#ids.trace() : TraceId.of(parent.traceId)
    const isSampled = parent === undefined ? this.#samplesRoot(id) : this.#samples(client, id.text, name)
    if (!isSampled) return this.#unsampled(id, client, parent)
    const now = performance.now()
    const trace = { id, state: parent?.traceState, client, epoch: Date.now() - now }
    return new OtelRequestSpan(spans, spans.request(name, trace, parent && SpanId.of(parent.spanId), now))
  }

  job(job: TracedJob, model: TracedModel): JobSpan {
    if (this.#spans === undefined) return NO_JOB_SPAN
    const id = this.#ids.trace()
    const client = ROOT_CONTEXT
    if (!this.#samplesRoot(id)) return this.#unsampled(id, client, undefined).job(job)
    const epoch = Date.now() - performance.now()
    return this.#spans.job(job, model, { id, state: undefined, client, epoch }, undefined)
  }

  #unsampled({ text: traceId }: TraceId, client: Context, parent: SpanContext | undefined): UnsampledSpan {
    const traceState = parent?.traceState
    const context = { traceId, spanId: this.#ids.span().text, traceFlags: TraceFlags.NONE, traceState }
    return new UnsampledSpan(context, client, this.#headers)
  }

  #samplesRoot(id: TraceId): boolean {
    return id.fold < this.#samplers.rootBound
  }

  #samples(client: Context, traceId: string, name: string): boolean {
    const { sdk } = this.#samplers
    const { decision } = sdk.shouldSample(client, traceId, name, SpanKind.SERVER, NO_ATTRIBUTES, NO_LINKS)
    return decision === SamplingDecision.RECORD_AND_SAMPLED
  }

  exportMetrics(families: Iterable<PageFamily>): void {
    this.#page.watch(families)
  }

  async close(): Promise<void> {
    const all = [this.#export?.close() ?? Promise.resolve(), this.#sdk.shutdown()]
    const ended = Promise.all(all).catch((error: unknown) => diag.warn(String(error)))
    let timer: NodeJS.Timeout | undefined
    await Promise.race([ended, new Promise((resolve) => (timer = setTimeout(resolve, CLOSE_MS)))])
    clearTimeout(timer)
    await this.#export?.terminate()
    // Another server in this process may start its own.
    propagation.disable()
    context.disable()
    diag.disable()
  }
}

/** The span of the client, if it is a valid one. */
function parentIn(client: Context): SpanContext | undefined {
  if (client === ROOT_CONTEXT) return undefined
  const parent = trace.getSpanContext(client)
  return parent !== undefined && isSpanContextValid(parent) ? parent : undefined
}
