import { diag } from '@opentelemetry/api'
import type { Environment } from './start.ts'
import { listOf, otlpVariable } from './variables.ts'

/** Where spans may go. */
export type TraceExporter = 'otlp' | 'zipkin' | 'console'

const KNOWN: ReadonlySet<string> = new Set<TraceExporter>(['otlp', 'zipkin', 'console'])

/**
 * Where spans go, as OTEL_TRACES_EXPORTER says: `otlp` (default), `zipkin`, `console`; none of them with
 * `none`.
 */
export function traceExporters(env: Environment): TraceExporter[] {
  const named = [...new Set(listOf(env['OTEL_TRACES_EXPORTER']))]
  if (named[0] === 'none') return []
  if (named.length === 0 || named.includes('none')) return ['otlp']
  return named.filter((name): name is TraceExporter => {
    if (!KNOWN.has(name))
      diag.warn(`Unrecognized OTEL_TRACES_EXPORTER value: ${name}; known: ${[...KNOWN].join(', ')}, none`)
    return KNOWN.has(name)
  })
}

/**
 * Whether spans go out as EncodedSpans writes them, and nothing has to read them before: over OTLP by
 * http/protobuf, the default.
 */
export function takesEncoded(exporters: readonly TraceExporter[], env: Environment): boolean {
  const protocol = otlpProtocol(env)
  return exporters.length === 1 && exporters[0] === 'otlp' && protocol !== 'grpc' && protocol !== 'http/json'
}

/** As the variables say it, supported or not; undefined: the default, `http/protobuf`. */
export function otlpProtocol(env: Environment): string | undefined {
  return otlpVariable(env, 'TRACES', 'PROTOCOL')[1] || undefined
}

/** One that is said and not supported: `http/protobuf` is used instead. */
export function unknownProtocol(env: Environment): string | undefined {
  const protocol = otlpProtocol(env)
  return ['grpc', 'http/json', 'http/protobuf', undefined].includes(protocol) ? undefined : protocol
}
