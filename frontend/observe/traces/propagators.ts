import { diag, type TextMapPropagator } from '@opentelemetry/api'
import { CompositePropagator, W3CBaggagePropagator, W3CTraceContextPropagator } from '@opentelemetry/core'
import { B3InjectEncoding, B3Propagator } from '@opentelemetry/propagator-b3'
import type { Environment } from './start.ts'
import { listOf } from './variables.ts'

/** All that the specification still has. */
const PROPAGATORS = new Map<string, () => TextMapPropagator>([
  ['tracecontext', () => new W3CTraceContextPropagator()],
  ['baggage', () => new W3CBaggagePropagator()],
  ['b3', () => new B3Propagator()],
  ['b3multi', () => new B3Propagator({ injectEncoding: B3InjectEncoding.MULTI_HEADER })],
])
const DEFAULT = ['tracecontext', 'baggage']

/**
 * Reads and writes contexts in the formats of OTEL_PROPAGATORS; in none with `none`.
 * https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/#general-sdk-configuration
 */
export function propagatorOf(env: Environment): TextMapPropagator {
  const listed = [...new Set(listOf(env['OTEL_PROPAGATORS']))]
  const named = listed.length === 0 ? DEFAULT : listed
  const propagators = named.includes('none') ? [] : named.flatMap(propagatorNamed)
  return new CompositePropagator({ propagators })
}

function propagatorNamed(name: string): TextMapPropagator[] {
  const make = PROPAGATORS.get(name)
  if (make !== undefined) return [make()]
  diag.warn(
    `OTEL_PROPAGATORS has "${name}", which is not supported; supported: ${[...PROPAGATORS.keys()].join(', ')}, none`,
  )
  return []
}
