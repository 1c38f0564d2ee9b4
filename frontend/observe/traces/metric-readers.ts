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
import { ownValue } from '../../../common/own-keys.ts'
import type { Environment } from './start.ts'
import { listOf, otlpVariable, positive } from './variables.ts'

/** Milliseconds; OpenTelemetry's defaults. */
const INTERVAL_MS = 60_000
const TIMEOUT_MS = 30_000

/** Variables that say where metrics go if OTEL_METRICS_EXPORTER is not set. */
const ENDPOINTS = ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_METRICS_ENDPOINT']

/**
 * Exports of metrics as OTEL_METRICS_EXPORTER asks for them: `otlp`, `console`, `none`. If it is not set:
 * `otlp` where a variable names the endpoint. OpenTelemetry's own default, a collector on this host, would
 * delay the stop of a server that only exports spans elsewhere. The SDK cannot be told of a producer by
 * variables alone.
 * https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
 */
export function metricReaders(env: Environment, producer: MetricProducer): IMetricReader[] {
  const names = listOf(env['OTEL_METRICS_EXPORTER'])
  const hasEndpoint = ENDPOINTS.some((name) => (ownValue(env, name)?.trim() ?? '') !== '')
  const wanted = names.length === 0 && hasEndpoint ? ['otlp'] : names
  const interval = positive(env['OTEL_METRIC_EXPORT_INTERVAL']) ?? INTERVAL_MS
  const timeout = Math.min(interval, positive(env['OTEL_METRIC_EXPORT_TIMEOUT']) ?? TIMEOUT_MS)
  return wanted.flatMap((name) => {
    const exporter = exporterOf(name, env)
    if (exporter === undefined) return []
    return new PeriodicExportingMetricReader({
      exporter,
      exportIntervalMillis: interval,
      exportTimeoutMillis: timeout,
      metricProducers: [producer],
    })
  })
}

function exporterOf(name: string, env: Environment): PushMetricExporter | undefined {
  if (name === 'console') return new ConsoleMetricExporter()
  if (name !== 'otlp') return undefined
  const [, protocol] = otlpVariable(env, 'METRICS', 'PROTOCOL')
  if (protocol === 'grpc') return new GrpcExporter()
  return protocol === 'http/json' ? new JsonExporter() : new ProtobufExporter()
}
