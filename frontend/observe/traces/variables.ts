import { ownValue } from '../../../common/own-keys.ts'
import { MAX_TIMER_MS } from '../../../common/timer.ts'
import type { Environment } from './start.ts'

/** The entries of a variable that is a list. */
export function listOf(text = ''): string[] {
  return text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
}

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
