import { ownValue } from '../../../common/own-keys.ts'
import type { Environment } from './start.ts'
import { listOf } from './variables.ts'

/** Where metrics may go. */
export type MetricExporter = 'otlp' | 'console'

/** Variables that say where metrics go if OTEL_METRICS_EXPORTER is not set. */
const ENDPOINTS = ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_METRICS_ENDPOINT']

/**
 * Where metrics go, as OTEL_METRICS_EXPORTER says: `otlp`, `console`, `none`. If it is not set: `otlp` where
 * a variable names the endpoint. OpenTelemetry's own default, a collector on this host, would delay the stop
 * of a server that only exports spans elsewhere.
 * https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
 */
export function metricExporters(env: Environment): MetricExporter[] {
  const names = listOf(env['OTEL_METRICS_EXPORTER'])
  const hasEndpoint = ENDPOINTS.some((name) => (ownValue(env, name)?.trim() ?? '') !== '')
  const wanted = names.length === 0 && hasEndpoint ? ['otlp'] : names
  return wanted.filter((name): name is MetricExporter => name === 'otlp' || name === 'console')
}
