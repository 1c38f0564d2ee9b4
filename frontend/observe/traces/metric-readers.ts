import { OTLPMetricExporter as GrpcExporter } from '@opentelemetry/exporter-metrics-otlp-grpc'
import { OTLPMetricExporter as JsonExporter } from '@opentelemetry/exporter-metrics-otlp-http'
import { OTLPMetricExporter as ProtobufExporter } from '@opentelemetry/exporter-metrics-otlp-proto'
import {
  ConsoleMetricExporter,
  type IMetricReader,
  type MetricProducer,
  PeriodicExportingMetricReader,
  type PushMetricExporter,
} from '@opentelemetry/sdk-metrics'
import type { MetricExporter } from './metric-exporters.ts'
import type { Environment } from './start.ts'
import { milliseconds, otlpVariable } from './variables.ts'

/** Milliseconds; OpenTelemetry's defaults. */
const INTERVAL_MS = 60_000
const TIMEOUT_MS = 30_000

/** The SDK's reader for each exporter, as the variables configure it. It takes a producer by code only. */
export function metricReaders(
  exporters: readonly MetricExporter[],
  env: Environment,
  producer: MetricProducer,
): IMetricReader[] {
  const interval = milliseconds(env['OTEL_METRIC_EXPORT_INTERVAL']) ?? INTERVAL_MS
  const timeout = Math.min(interval, milliseconds(env['OTEL_METRIC_EXPORT_TIMEOUT']) ?? TIMEOUT_MS)
  return exporters.map(
    (name) =>
      new PeriodicExportingMetricReader({
        exporter: name === 'console' ? new ConsoleMetricExporter() : otlpExporter(env),
        exportIntervalMillis: interval,
        exportTimeoutMillis: timeout,
        metricProducers: [producer],
      }),
  )
}

function otlpExporter(env: Environment): PushMetricExporter {
  const [, protocol] = otlpVariable(env, 'METRICS', 'PROTOCOL')
  if (protocol === 'grpc') return new GrpcExporter()
  return protocol === 'http/json' ? new JsonExporter() : new ProtobufExporter()
}
