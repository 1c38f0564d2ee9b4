import { diag } from '@opentelemetry/api'
import { MeterProvider } from '@opentelemetry/sdk-metrics'
import { TracerProvider } from '@opentelemetry/sdk-trace'
import type { PageFamily } from '../metrics/page.ts'
import { metricReaders, spanProcessors } from './exporters.ts'
import { OtelSpans } from './otel-spans.ts'
import { PageProducer } from './page-producer.ts'
import { reportTo } from './reports.ts'
import { SCOPE, serverResource } from './resource.ts'
import { propagatorOf, samplerOf, spanLimits } from './sdk-settings.ts'
import type { Environment } from './start.ts'
import { TraceHeaders } from './trace-headers.ts'
import type { HeaderCarrier, JobSpan, RequestSpan, TracedJob, TracedModel, Tracing } from './tracing.ts'
import { NO_JOB_SPAN } from './unsampled-span.ts'

/** Milliseconds for the last export. */
const CLOSE_MS = 3_000

/** Tracing by OpenTelemetry's SDK, as its standard variables configure it. */
export class OtelTracing implements Tracing {
  readonly #page = new PageProducer()
  /** Undefined: spans go nowhere. */
  readonly #spans: OtelSpans | undefined
  readonly #providers: readonly { shutdown(): Promise<void> }[]

  /** @param warn gets each different report of the SDK once */
  constructor(env: Environment, warn: (message: string) => void) {
    reportTo(warn)
    const resource = serverResource()
    const readers = metricReaders(env, this.#page)
    const processors = spanProcessors(env)
    const meters = readers.length === 0 ? [] : [new MeterProvider({ resource, readers })]
    this.#providers = meters
    if (processors.length === 0) return
    const provider = new TracerProvider({
      resource,
      sampler: samplerOf(env),
      spanLimits: spanLimits(env),
      spanProcessors: processors,
    })
    const tracer = provider.getTracer(SCOPE.name, SCOPE.version)
    this.#spans = new OtelSpans(tracer, new TraceHeaders(propagatorOf(env)))
    this.#providers = [...meters, provider]
  }

  request(name: string, headers: HeaderCarrier): RequestSpan | undefined {
    return this.#spans?.request(name, headers)
  }

  job(job: TracedJob, model: TracedModel): JobSpan {
    return this.#spans?.job(job, model) ?? NO_JOB_SPAN
  }

  exportMetrics(families: Iterable<PageFamily>): void {
    this.#page.watch(families)
  }

  async close(): Promise<void> {
    const ended = Promise.all(this.#providers.map((provider) => provider.shutdown())).catch(
      (error: unknown) => diag.warn('the last spans are lost', error),
    )
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        diag.warn('the stop did not wait longer, and the last spans are lost')
        resolve()
      }, CLOSE_MS)
    })
    await Promise.race([ended, late])
    clearTimeout(timer)
    // Another server in this process may have its own.
    diag.disable()
  }
}
