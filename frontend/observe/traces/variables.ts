import { splitList } from '../../../common/names.ts'
import { ownValue } from '../../../common/json.ts'
import { MAX_TIMER_MS } from '../../../common/timer.ts'
import type { Environment } from './start.ts'

/** A variable that is a number greater than 0; undefined: the default holds. */
export function positive(text: string | undefined): number | undefined {
  const value = Number(text)
  return value > 0 && Number.isFinite(value) ? value : undefined
}

/** A variable that is a time in milliseconds, at least 1; undefined: the default holds. */
export function milliseconds(text: string | undefined): number | undefined {
  const value = positive(text)
  return value === undefined ? undefined : Math.min(Math.max(value, 1), MAX_TIMER_MS)
}

/** A variable that is a number not less than 0; undefined: the default holds. */
export function numberFrom(text = ''): number | undefined {
  const value = Number(text)
  return text.trim() === '' || !(value >= 0) ? undefined : value
}

/**
 * What the variable of OTLP for a signal says or, where that is empty or not set, the one for all signals;
 * with its name. Empty: neither says anything.
 */
export function otlpVariable(
  env: Environment,
  signal: 'TRACES' | 'METRICS',
  what: 'ENDPOINT' | 'PROTOCOL',
): [name: string, value: string] {
  const own = `OTEL_EXPORTER_OTLP_${signal}_${what}`
  const valueOf = (name: string): string => ownValue(env, name)?.trim() ?? ''
  const name = valueOf(own) === '' ? `OTEL_EXPORTER_OTLP_${what}` : own
  return [name, valueOf(name)]
}

type Warn = (message: string) => void

/** Those that the SDK does not read here. */
const POSITIVE = [
  'OTEL_BSP_MAX_QUEUE_SIZE',
  'OTEL_BSP_SCHEDULE_DELAY',
  'OTEL_BSP_EXPORT_TIMEOUT',
  'OTEL_BSP_MAX_EXPORT_BATCH_SIZE',
  'OTEL_METRIC_EXPORT_INTERVAL',
  'OTEL_METRIC_EXPORT_TIMEOUT',
  'OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT',
  'OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT',
]
const FROM_ZERO = [
  'OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT',
  'OTEL_ATTRIBUTE_COUNT_LIMIT',
  'OTEL_SPAN_EVENT_COUNT_LIMIT',
]

/** Warns of variables whose values do not count. The SDK would say nothing, or that an export has failed. */
export function checkVariables(env: Environment, warn: Warn): void {
  checkNumbers(env, warn)
  checkEndpoints(env, warn)
}

/** https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/#numeric */
function checkNumbers(env: Environment, warn: Warn): void {
  const check = (name: string, value: number | undefined, wanted: string): void => {
    const text = ownValue(env, name)?.trim() ?? ''
    if (text === '' || value !== undefined) return
    warn(
      `OpenTelemetry: ${name} must be a number ${wanted}, and is "${text.slice(0, 80)}": the default holds`,
    )
  }
  for (const name of POSITIVE) check(name, positive(ownValue(env, name)), 'greater than 0')
  for (const name of FROM_ZERO) check(name, numberFrom(ownValue(env, name)), 'not less than 0')
}

/** An address that is no URL. */
function checkEndpoints(env: Environment, warn: Warn): void {
  const wrong = new Set<string>()
  for (const signal of ['TRACES', 'METRICS'] as const) {
    const exporters = splitList(ownValue(env, `OTEL_${signal}_EXPORTER`) ?? '')
    if (exporters.length > 0 && !exporters.includes('otlp')) continue
    const [, protocol] = otlpVariable(env, signal, 'PROTOCOL')
    const [name, endpoint] = otlpVariable(env, signal, 'ENDPOINT')
    // gRPC also takes a host and a port.
    if (endpoint !== '' && protocol !== 'grpc' && !/^https?:\/\//i.test(endpoint)) wrong.add(name)
  }
  for (const name of wrong)
    warn(`OpenTelemetry: ${name} must be a URL such as http://localhost:4318; nothing is exported to it`)
}
