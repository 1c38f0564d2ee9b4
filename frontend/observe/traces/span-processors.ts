import { diag } from '@opentelemetry/api'
import { OTLPTraceExporter as GrpcExporter } from '@opentelemetry/exporter-trace-otlp-grpc'
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { ZipkinExporter } from '@opentelemetry/exporter-zipkin'
import {
  BatchSpanProcessor,
  ConsoleSpanExporter,
  SimpleSpanProcessor,
  type SpanExporter,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace'
import { listOf, positive } from './variables.ts'
import type { Environment } from './start.ts'

/**
 * Where spans go, as OTEL_TRACES_EXPORTER says: `otlp` (default), `zipkin`, `console`; none of them with
 * `none`. The SDK makes the same of its variables, but gives them to its own spans only.
 */
export function spanProcessors(env: Environment): SpanProcessor[] {
  const named = [...new Set(listOf(env['OTEL_TRACES_EXPORTER']))]
  if (named[0] === 'none') return []
  const wanted = named.length === 0 || named.includes('none') ? ['otlp'] : named
  return wanted.flatMap((name) => {
    if (name === 'console') return [new SimpleSpanProcessor({ exporter: new ConsoleSpanExporter() })]
    const exporter = exporterOf(name, env)
    if (exporter === undefined) diag.warn(`Unrecognized OTEL_TRACES_EXPORTER value: ${name}.`)
    return exporter === undefined ? [] : [batched(exporter, env)]
  })
}

function exporterOf(name: string, env: Environment): SpanExporter | undefined {
  if (name === 'zipkin') return new ZipkinExporter()
  if (name !== 'otlp') return undefined
  const protocol = (env['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL'] ?? env['OTEL_EXPORTER_OTLP_PROTOCOL'])?.trim()
  if (protocol === 'grpc') return new GrpcExporter()
  if (protocol === 'http/json') return new JsonExporter()
  if (protocol !== undefined && protocol !== '' && protocol !== 'http/protobuf')
    diag.warn(`Unsupported OTLP traces protocol: ${protocol}. Using http/protobuf.`)
  return new ProtobufExporter()
}

function batched(exporter: SpanExporter, env: Environment): SpanProcessor {
  return new BatchSpanProcessor({
    exporter,
    maxQueueSize: positive(env['OTEL_BSP_MAX_QUEUE_SIZE']),
    scheduledDelayMillis: positive(env['OTEL_BSP_SCHEDULE_DELAY']),
    exportTimeoutMillis: positive(env['OTEL_BSP_EXPORT_TIMEOUT']),
    maxExportBatchSize: positive(env['OTEL_BSP_MAX_EXPORT_BATCH_SIZE']),
  })
}
