import { type SpanContext, TraceFlags } from '@opentelemetry/api'
import { OTLPExporterBase } from '@opentelemetry/otlp-exporter-base'
import {
  convertLegacyHttpOptions,
  createOtlpHttpExportDelegate,
} from '@opentelemetry/otlp-exporter-base/node-http'
import {
  type ISerializer,
  ProtobufTraceSerializer,
  TraceExporterMetricsHelper,
} from '@opentelemetry/otlp-transformer'
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace'
import { writeAttribute } from './encoded-spans.ts'
import type { Origin } from './exported-span.ts'
import { LONG, MEDIUM, ProtobufWriter, SHORT } from './protobuf-writer.ts'
import type { SpanAttribute } from './tracing.ts'

/** Processors ask only whether a span is sampled. */
const SAMPLED: SpanContext = { traceId: '', spanId: '', traceFlags: TraceFlags.SAMPLED }

/** A span of EncodedSpans, for the SDK's processors. */
export class EncodedSpan {
  /** Field 2 of ScopeSpans. */
  readonly bytes: Uint8Array
  readonly resource: Origin['resource']

  constructor(bytes: Uint8Array, resource: Origin['resource']) {
    this.bytes = bytes
    this.resource = resource
  }

  spanContext(): SpanContext {
    return SAMPLED
  }
}

/** The spans of EncodedSpans, which are one behind the other. */
export function* splitSpans(bytes: Uint8Array, resource: Origin['resource']): Generator<ReadableSpan> {
  for (let at = 0; at < bytes.length;) {
    // The tag is one byte; the length follows, seven bits in each byte.
    let length = 0
    let next = at + 1
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[next++]!
      length |= (byte & 127) << shift
      if (byte < 128) break
    }
    const end = next + length
    yield new EncodedSpan(bytes.subarray(at, end), resource) as unknown as ReadableSpan
    at = end
  }
}

type Serializer = ISerializer<ReadableSpan[], ReturnType<typeof ProtobufTraceSerializer.deserializeResponse>>

/** Puts spans of EncodedSpans into a request. */
export class EncodedSerializer implements Serializer {
  readonly deserializeResponse = ProtobufTraceSerializer.deserializeResponse
  readonly #writer = new ProtobufWriter()
  /** The resource, and the scope, as fields. */
  readonly #resource: Uint8Array
  readonly #scope: Uint8Array

  constructor({ resource, scope }: Origin) {
    const writer = this.#writer
    const own = writer.begin(1, MEDIUM)
    for (const [name, value] of Object.entries(resource.attributes))
      writeAttribute(writer, 1, name, value as SpanAttribute)
    // No attributes were dropped.
    writer.number(2, 0)
    writer.end(own, MEDIUM)
    this.#resource = writer.take()
    const message = writer.begin(1, SHORT)
    writer.text(1, scope.name)
    if (scope.version !== undefined) writer.text(2, scope.version)
    writer.end(message, SHORT)
    this.#scope = writer.take()
  }

  serializeRequest(spans: ReadableSpan[]): Uint8Array {
    const writer = this.#writer
    const request = writer.begin(1, LONG)
    writer.raw(this.#resource)
    const scopeSpans = writer.begin(2, LONG)
    writer.raw(this.#scope)
    for (const span of spans) writer.raw((span as unknown as EncodedSpan).bytes)
    writer.end(scopeSpans, LONG)
    writer.end(request, LONG)
    return writer.take()
  }
}

/** The SDK's exporter for http/protobuf, except that its spans have their bytes already. */
export function encodedExporter(origin: Origin): SpanExporter {
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- so the SDK's own reads its variables
  const options = convertLegacyHttpOptions({}, 'TRACES', 'v1/traces', {
    'Content-Type': 'application/x-protobuf',
  })
  return new OTLPExporterBase(
    createOtlpHttpExportDelegate(
      options,
      new EncodedSerializer(origin),
      'otlp_http_span_exporter',
      TraceExporterMetricsHelper,
      undefined,
    ),
  )
}
