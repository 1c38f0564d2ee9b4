import { ownValue } from '../../../common/json.ts'
import type { Tracing } from './tracing.ts'
import { checkVariables } from './variables.ts'

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
  checkVariables(env, warn)
  const { OtelTracing } = await import('./otel-tracing.ts')
  return new OtelTracing(env, warn)
}
