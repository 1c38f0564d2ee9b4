import { diag } from '@opentelemetry/api'
import type { PageFamily } from '../metrics/page.ts'
import { metricExporters } from './metric-exporters.ts'
import type { OtelMetrics } from './otel-metrics.ts'
import { propagatorOf } from './propagators.ts'
import { reportTo } from './reports.ts'
import { RequestTraces } from './request-traces.ts'
import { SpanExport } from './span-export.ts'
import type { Environment } from './start.ts'
import { takesEncoded, traceExporters } from './trace-exporters.ts'
import type { HeaderCarrier, JobSpan, RequestSpan, TracedJob, TracedModel, Tracing } from './tracing.ts'
import { NO_JOB_SPAN } from './unsampled-span.ts'

/** Milliseconds for the last export. */
const CLOSE_MS = 3_000

/**
 * Tracing as OpenTelemetry's standard variables configure it. Its SDK is loaded by the thread that exports
 * spans, and by this one only if metrics are exported: what is loaded here takes part in each collection of
 * garbage.
 */
export class OtelTracing implements Tracing {
  /** Undefined: spans go nowhere. */
  readonly #export: SpanExport | undefined
  readonly #traces: RequestTraces | undefined
  /** Undefined: metrics go nowhere. */
  readonly #metrics: OtelMetrics | undefined

  private constructor(
    spans: { readonly export: SpanExport; readonly traces: RequestTraces } | undefined,
    metrics: OtelMetrics | undefined,
  ) {
    this.#export = spans?.export
    this.#traces = spans?.traces
    this.#metrics = metrics
  }

  /** @param warn gets each different report of the SDK once */
  static async start(env: Environment, warn: (message: string) => void): Promise<OtelTracing> {
    reportTo(warn)
    const metrics = await startMetrics(env)
    const exporters = traceExporters(env)
    if (exporters.length === 0) return new OtelTracing(undefined, metrics)
    const propagator = propagatorOf(env)
    const spanExport = new SpanExport({ exporters, encoded: takesEncoded(exporters, env) }, env, warn)
    const traces = new RequestTraces(env, propagator, spanExport)
    return new OtelTracing({ export: spanExport, traces }, metrics)
  }

  request(name: string, headers: HeaderCarrier): RequestSpan | undefined {
    return this.#traces?.request(name, headers)
  }

  job(job: TracedJob, model: TracedModel): JobSpan {
    return this.#traces?.job(job, model) ?? NO_JOB_SPAN
  }

  exportMetrics(families: Iterable<PageFamily>): void {
    this.#metrics?.export(families)
  }

  async close(): Promise<void> {
    const ended = Promise.all([this.#export?.close(), this.#metrics?.close()]).catch((error: unknown) =>
      diag.warn(String(error)),
    )
    let timer: NodeJS.Timeout | undefined
    await Promise.race([ended, new Promise((resolve) => (timer = setTimeout(resolve, CLOSE_MS)))])
    clearTimeout(timer)
    await this.#export?.terminate()
    // Another server in this process may have its own.
    diag.disable()
  }
}

/** Undefined: metrics go nowhere. */
async function startMetrics(env: Environment): Promise<OtelMetrics | undefined> {
  const exporters = metricExporters(env)
  if (exporters.length === 0) return undefined
  const { OtelMetrics } = await import('./otel-metrics.ts')
  return new OtelMetrics(exporters, env)
}
