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
import { batchSettings } from './batch-settings.ts'
import type { Environment } from './start.ts'
import { otlpProtocol, type TraceExporter } from './trace-exporters.ts'

/**
 * The SDK's processor for each exporter, as its variables configure it. The SDK makes the same of them, but
 * gives them to its own spans only.
 */
export function spanProcessors(exporters: readonly TraceExporter[], env: Environment): SpanProcessor[] {
  return exporters.map((name) => {
    if (name === 'console') return new SimpleSpanProcessor({ exporter: new ConsoleSpanExporter() })
    const exporter = name === 'zipkin' ? new ZipkinExporter() : otlpExporter(env)
    return new BatchSpanProcessor({ exporter, ...batchSettings(env) })
  })
}

function otlpExporter(env: Environment): SpanExporter {
  const protocol = otlpProtocol(env)
  if (protocol === 'grpc') return new GrpcExporter()
  return protocol === 'http/json' ? new JsonExporter() : new ProtobufExporter()
}
