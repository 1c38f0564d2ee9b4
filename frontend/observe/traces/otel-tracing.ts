import {
  type Attributes,
  context,
  type ContextManager,
  diag,
  DiagLogLevel,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type TextMapGetter,
  type TextMapSetter,
  trace,
  type Tracer,
} from '@opentelemetry/api'
import { envDetector, resourceFromAttributes } from '@opentelemetry/resources'
import { NodeSDK } from '@opentelemetry/sdk-node'
import { hostname } from 'node:os'
import { headerLine, headerValue } from '../../../common/header-lines.ts'
import { version } from '../../package-info.ts'
import type { PageFamily } from '../metrics/page.ts'
import { OtelJobSpan } from './otel-job-span.ts'
import { metricReaders } from './metric-readers.ts'
import { PageProducer } from './page-producer.ts'
import type { Environment } from './start.ts'
import type { HeaderCarrier, JobSpan, RequestSpan, SpanAttributes, TracedJob, Tracing } from './tracing.ts'

/** Milliseconds for the last export. */
const CLOSE_MS = 3_000
/** Characters of one attribute, because clients choose some of them. */
const MAX_TEXT = 256
/** Entries of an attribute that is a list. */
const MAX_ENTRIES = 128

const CARRIER: TextMapGetter<HeaderCarrier> & TextMapSetter<HeaderCarrier> = {
  get: (carrier, name) => carrier.get(name),
  keys: () => [],
  set: (carrier, name, value) => carrier.set(name, value),
}

/** Headers in the format of common/header-lines.ts: the last value of a name is the one that holds. */
const LINES: TextMapGetter<TracedJob['request']> & TextMapSetter<TracedJob['request']> = {
  get: ({ headers }, name) => headerValue(headers, name),
  keys: () => [],
  set: (request, name, value) => {
    request.headers += headerLine(name, value)
  },
}

/**
 * Parents of spans are always named here, never the active context of a call. OpenTelemetry's own manager
 * would follow it through every promise of the process, which costs much on Node 20.
 */
const NO_ACTIVE_CONTEXT: ContextManager = {
  active: () => ROOT_CONTEXT,
  with: (_context, run, self, ...args) => run.apply(self, args),
  bind: (_context, target) => target,
  enable: () => NO_ACTIVE_CONTEXT,
  disable: () => NO_ACTIVE_CONTEXT,
}

/** The header that `request` wrote, in the format of common/header-lines.ts. */
const NOT_SAMPLED = /(?:^|\n)traceparent\n00-[0-9a-f]{32}-[0-9a-f]{16}-00\n/

/** Tracing by OpenTelemetry's SDK, as its standard variables configure it. */
export class OtelTracing implements Tracing {
  readonly #sdk: NodeSDK
  readonly #tracer: Tracer
  readonly #page = new PageProducer()
  /** Whether `request` writes `traceparent`. Every sampler decides about a job as about its request. */
  readonly #tellsHeaders: boolean

  /** @param warn gets each different report of the SDK once */
  constructor(env: Environment, warn: (message: string) => void) {
    const reported = new Set<string>()
    const report = (message: string): void => {
      const line = `OpenTelemetry: ${firstLine(message)}`
      if (reported.has(line) || reported.size >= MAX_REPORTS) return
      reported.add(line)
      warn(line)
    }
    const quiet = (): void => undefined
    diag.setLogger(
      { error: report, warn: report, info: quiet, debug: quiet, verbose: quiet },
      { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
    )
    this.#sdk = new NodeSDK({
      instrumentations: [],
      contextManager: NO_ACTIVE_CONTEXT,
      metricReaders: metricReaders(env, this.#page),
      logRecordProcessors: [],
      // The command line, which other detectors tell, may have secrets.
      resourceDetectors: [envDetector],
      resource: resourceFromAttributes({
        'service.name': 'torchserve-ts',
        'service.version': version,
        'host.name': hostname(),
        'process.pid': process.pid,
        'process.runtime.name': 'nodejs',
        'process.runtime.version': process.versions.node,
      }),
    })
    this.#tellsHeaders = (env['OTEL_PROPAGATORS'] ?? 'tracecontext').includes('tracecontext')
    this.#sdk.start()
    this.#tracer = trace.getTracer('torchserve-ts', version)
  }

  request(name: string, headers: HeaderCarrier): RequestSpan {
    const parent = propagation.extract(ROOT_CONTEXT, headers, CARRIER)
    const span = this.#tracer.startSpan(name, { kind: SpanKind.SERVER }, parent)
    propagation.inject(trace.setSpan(parent, span), headers, CARRIER)
    return new OtelRequestSpan(span)
  }

  job(
    job: TracedJob,
    { name, version: modelVersion }: { name: string; version: string },
  ): JobSpan | undefined {
    const { request } = job
    if (this.#tellsHeaders && NOT_SAMPLED.test(request.headers)) return undefined
    const parent = propagation.extract(ROOT_CONTEXT, request, LINES)
    const attributes = {
      'torchserve_ts.model.name': name,
      'torchserve_ts.model.version': modelVersion,
      'torchserve_ts.request.id': request.requestId,
      'torchserve_ts.handler.method': request.method,
    }
    const span = this.#tracer.startSpan(`model ${name}`, { startTime: job.createdAt, attributes }, parent)
    const own = trace.setSpan(parent, span)
    propagation.inject(own, request, LINES)
    return new OtelJobSpan(this.#tracer, span, own)
  }

  exportMetrics(families: Iterable<PageFamily>): void {
    this.#page.watch(families)
  }

  async close(): Promise<void> {
    const ended = this.#sdk.shutdown().catch((error: unknown) => diag.warn(String(error)))
    let timer: NodeJS.Timeout | undefined
    await Promise.race([ended, new Promise((resolve) => (timer = setTimeout(resolve, CLOSE_MS)))])
    clearTimeout(timer)
    // Another server in this process may start its own.
    trace.disable()
    propagation.disable()
    context.disable()
    diag.disable()
  }
}

const MAX_REPORTS = 100

function firstLine(text: string): string {
  return text.split('\n', 1)[0]!.slice(0, 1_000)
}

/** Without what is undefined, and with texts and lists cut. */
function bounded(attributes: SpanAttributes): Attributes {
  const kept = Object.entries(attributes).filter(([, value]) => value !== undefined)
  return Object.fromEntries(
    kept.map(([name, value]) => [
      name,
      Array.isArray(value) ? value.slice(0, MAX_ENTRIES).map(cut) : cut(value),
    ]),
  )
}

function cut<Value>(value: Value): Value | string {
  return typeof value === 'string' ? value.slice(0, MAX_TEXT) : value
}

class OtelRequestSpan implements RequestSpan {
  readonly traceId: string
  readonly traceparent: string
  readonly #span: Span

  constructor(span: Span) {
    const { traceId, spanId, traceFlags } = span.spanContext()
    this.#span = span
    this.traceId = traceId
    this.traceparent = `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`
  }

  get recording(): boolean {
    return this.#span.isRecording()
  }

  set(attributes: SpanAttributes): void {
    this.#span.setAttributes(bounded(attributes))
  }

  rename(name: string): void {
    this.#span.updateName(name)
  }

  end(failed: boolean): void {
    if (failed) this.#span.setStatus({ code: SpanStatusCode.ERROR })
    this.#span.end()
  }
}
