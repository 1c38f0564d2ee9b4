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
import { batchSettings } from './batch-settings.ts'
import { EncodedExporter } from './encoded-exporter.ts'
import type { Origin } from './exported-span.ts'
import type { ExporterSettings } from './span-export.ts'
import { otlpProtocol } from './trace-exporters.ts'
import type { Environment } from './start.ts'

/**
 * The SDK's processor for each exporter, as its variables configure it. The SDK makes the same of them, but
 * gives them to its own spans only.
 */
export function spanProcessors(
  { exporters, encoded }: Pick<ExporterSettings, 'exporters' | 'encoded'>,
  env: Environment,
  origin: Origin,
): SpanProcessor[] {
  return exporters.map((name) => {
    if (name === 'console') return new SimpleSpanProcessor({ exporter: new ConsoleSpanExporter() })
    const exporter =
      name === 'zipkin' ? new ZipkinExporter() : otlpExporter(env, encoded ? origin : undefined)
    const settings = batchSettings(env)
    return new BatchSpanProcessor({ exporter, ...settings, ...(encoded ? ONE_BY_ONE : {}) })
  })
}

/**
 * For spans that are batches of them. How many wait is bounded before they come; one that the processor
 * dropped would count for ever.
 */
const ONE_BY_ONE = { maxQueueSize: Number.MAX_SAFE_INTEGER, maxExportBatchSize: 1 }

/** @param encodedOf of spans that EncodedSpans wrote, which is http/protobuf; undefined: of others */
function otlpExporter(env: Environment, encodedOf: Origin | undefined): SpanExporter {
  const protocol = otlpProtocol(env)
  if (protocol === 'grpc' && encodedOf === undefined) return new GrpcExporter()
  if (protocol === 'http/json' && encodedOf === undefined) return new JsonExporter()
  if (protocol !== undefined && protocol !== 'http/protobuf')
    diag.warn(`Unsupported OTLP traces protocol: ${protocol}. Using http/protobuf.`)
  return encodedOf === undefined ? new ProtobufExporter() : new EncodedExporter(encodedOf)
}
