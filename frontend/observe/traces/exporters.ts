/** Where spans and metrics go, as the standard variables say. */
import { diag } from '@opentelemetry/api'
import { OTLPMetricExporter as GrpcMetrics } from '@opentelemetry/exporter-metrics-otlp-grpc'
import { OTLPMetricExporter as JsonMetrics } from '@opentelemetry/exporter-metrics-otlp-http'
import { OTLPMetricExporter as ProtobufMetrics } from '@opentelemetry/exporter-metrics-otlp-proto'
import { OTLPTraceExporter as GrpcSpans } from '@opentelemetry/exporter-trace-otlp-grpc'
import { OTLPTraceExporter as JsonSpans } from '@opentelemetry/exporter-trace-otlp-http'
import { OTLPTraceExporter as ProtobufSpans } from '@opentelemetry/exporter-trace-otlp-proto'
import { ZipkinExporter } from '@opentelemetry/exporter-zipkin'
import {
  ConsoleMetricExporter,
  type IMetricReader,
  type MetricProducer,
  PeriodicExportingMetricReader,
  type PushMetricExporter,
} from '@opentelemetry/sdk-metrics'
import {
  BatchSpanProcessor,
  ConsoleSpanExporter,
  SimpleSpanProcessor,
  type SpanExporter,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace'
import { splitList } from '../../../common/names.ts'
import { ownValue } from '../../../common/json.ts'
import type { Environment } from './start.ts'
import { milliseconds, otlpVariable, positive } from './variables.ts'

const SPAN_EXPORTERS = ['otlp', 'zipkin', 'console']

/** Variables that say where metrics go if OTEL_METRICS_EXPORTER is not set. */
const METRIC_ENDPOINTS = ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_METRICS_ENDPOINT']

/** Milliseconds; OpenTelemetry's defaults. */
const METRIC_INTERVAL_MS = 60_000
const METRIC_TIMEOUT_MS = 30_000

/**
 * A processor for each exporter of OTEL_TRACES_EXPORTER: `otlp` (default), `zipkin`, `console`; none with
 * `none`. OTEL_BSP_* set their batches; the defaults are the SDK's.
 * https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/#batch-span-processor
 */
export function spanProcessors(env: Environment): SpanProcessor[] {
  const batch = (name: string): string | undefined => ownValue(env, `OTEL_BSP_${name}`)
  const batches = {
    maxQueueSize: positive(batch('MAX_QUEUE_SIZE')),
    scheduledDelayMillis: milliseconds(batch('SCHEDULE_DELAY')),
    exportTimeoutMillis: milliseconds(batch('EXPORT_TIMEOUT')),
    maxExportBatchSize: positive(batch('MAX_EXPORT_BATCH_SIZE')),
  }
  return spanExporters(env).map((name) => {
    if (name === 'console') return new SimpleSpanProcessor({ exporter: new ConsoleSpanExporter() })
    const exporter = name === 'zipkin' ? new ZipkinExporter() : otlpSpans(env)
    return new BatchSpanProcessor({ exporter, ...batches })
  })
}

function spanExporters(env: Environment): string[] {
  const named = [...new Set(splitList(env['OTEL_TRACES_EXPORTER'] ?? ''))]
  if (named[0] === 'none') return []
  if (named.length === 0 || named.includes('none')) return ['otlp']
  return named.filter((name) => {
    const isKnown = SPAN_EXPORTERS.includes(name)
    if (!isKnown)
      diag.warn(`Unrecognized OTEL_TRACES_EXPORTER value: ${name}; known: ${SPAN_EXPORTERS.join(', ')}, none`)
    return isKnown
  })
}

function otlpSpans(env: Environment): SpanExporter {
  const [, protocol] = otlpVariable(env, 'TRACES', 'PROTOCOL')
  if (protocol === 'grpc') return new GrpcSpans()
  if (protocol === 'http/json') return new JsonSpans()
  if (protocol !== '' && protocol !== 'http/protobuf')
    diag.warn(`Unsupported OTLP traces protocol: ${protocol}. Using http/protobuf.`)
  return new ProtobufSpans()
}

/**
 * A reader of `producer` for each exporter of OTEL_METRICS_EXPORTER: `otlp`, `console`, `none`. If it is not
 * set: `otlp` where a variable names the endpoint. OpenTelemetry's own default, a collector on this host,
 * would delay the stop of a server that only exports spans elsewhere.
 * https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
 */
export function metricReaders(env: Environment, producer: MetricProducer): IMetricReader[] {
  const interval = milliseconds(env['OTEL_METRIC_EXPORT_INTERVAL']) ?? METRIC_INTERVAL_MS
  const timeout = Math.min(interval, milliseconds(env['OTEL_METRIC_EXPORT_TIMEOUT']) ?? METRIC_TIMEOUT_MS)
  return metricExporters(env).map(
    (name) =>
      new PeriodicExportingMetricReader({
        exporter: name === 'console' ? new ConsoleMetricExporter() : otlpMetrics(env),
        exportIntervalMillis: interval,
        exportTimeoutMillis: timeout,
        metricProducers: [producer],
      }),
  )
}

function metricExporters(env: Environment): string[] {
  const named = splitList(env['OTEL_METRICS_EXPORTER'] ?? '')
  const hasEndpoint = METRIC_ENDPOINTS.some((name) => (ownValue(env, name)?.trim() ?? '') !== '')
  const wanted = named.length === 0 && hasEndpoint ? ['otlp'] : named
  return wanted.filter((name) => name === 'otlp' || name === 'console')
}

function otlpMetrics(env: Environment): PushMetricExporter {
  const [, protocol] = otlpVariable(env, 'METRICS', 'PROTOCOL')
  if (protocol === 'grpc') return new GrpcMetrics()
  return protocol === 'http/json' ? new JsonMetrics() : new ProtobufMetrics()
}
