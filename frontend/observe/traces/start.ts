import { ownValue } from '../../../common/own-keys.ts'
import type { Tracing } from './tracing.ts'
import { listOf, otlpVariable } from './variables.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** Variables that say where spans or metrics go; one of them turns OpenTelemetry on. */
const DESTINATIONS = [
  'OTEL_EXPORTER_OTLP_ENDPOINT',
  'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
  'OTEL_EXPORTER_OTLP_METRICS_ENDPOINT',
  'OTEL_TRACES_EXPORTER',
  'OTEL_METRICS_EXPORTER',
]

/** Whether the standard variables of OpenTelemetry say that something is exported. */
export function isTracingOn(env: Environment): boolean {
  if (env['OTEL_SDK_DISABLED']?.trim().toLowerCase() === 'true') return false
  return DESTINATIONS.some((name) => {
    const value = ownValue(env, name)?.trim()
    return value !== undefined && value !== '' && value !== 'none'
  })
}

/**
 * Starts OpenTelemetry, if its variables ask for it. Undefined: it is off, and nothing of it is loaded.
 * @param warn gets what the SDK reports, such as a collector that does not answer
 */
export async function startTracing(
  env: Environment,
  warn: (message: string) => void,
): Promise<Tracing | undefined> {
  if (!isTracingOn(env)) return undefined
  checkEndpoints(env, warn)
  const { OtelTracing } = await import('./otel-tracing.ts')
  return OtelTracing.start(env, warn)
}

/** Warns of an address that is no URL: the SDK notices when it exports, and then says only that it failed. */
export function checkEndpoints(env: Environment, warn: (message: string) => void): void {
  const wrong = new Set<string>()
  for (const signal of ['TRACES', 'METRICS'] as const) {
    const exporters = listOf(ownValue(env, `OTEL_${signal}_EXPORTER`))
    if (exporters.length > 0 && !exporters.includes('otlp')) continue
    const [, protocol] = otlpVariable(env, signal, 'PROTOCOL')
    const [name, endpoint] = otlpVariable(env, signal, 'ENDPOINT')
    // gRPC also takes a host and a port.
    if (endpoint !== '' && protocol !== 'grpc' && !/^https?:\/\//i.test(endpoint)) wrong.add(name)
  }
  for (const name of wrong)
    warn(`OpenTelemetry: ${name} must be a URL such as http://localhost:4318; nothing is exported to it`)
}
