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
import { MEDIUM, ProtobufWriter, SHORT } from './protobuf-writer.ts'
import type { SpanAttribute } from './tracing.ts'

/** Processors ask only whether a span is sampled. */
const SAMPLED: SpanContext = { traceId: '', spanId: '', traceFlags: TraceFlags.SAMPLED }

/**
 * Spans of EncodedSpans that are exported together; for the SDK's processors one span. With an object for
 * each of them, an export took several times as long.
 */
export class EncodedBatch {
  /** Fields 2 of ScopeSpans, one behind the other. */
  readonly bytes: Uint8Array
  readonly resource: Origin['resource']
  /** To be called when it has been exported, or given up. */
  readonly done: () => void

  constructor(bytes: Uint8Array, resource: Origin['resource'], done: () => void) {
    this.bytes = bytes
    this.resource = resource
    this.done = done
  }

  spanContext(): SpanContext {
    return SAMPLED
  }

  /** As what processors take it for. */
  asSpan(): ReadableSpan {
    return this as unknown as ReadableSpan
  }
}

type Serializer = ISerializer<ReadableSpan[], ReturnType<typeof ProtobufTraceSerializer.deserializeResponse>>

/** Puts batches of spans into a request. */
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

  /** @param batches EncodedBatch, in the SDK's type */
  serializeRequest(batches: ReadableSpan[]): Uint8Array {
    const spans = batches.map((batch) => (batch as unknown as EncodedBatch).bytes)
    const scoped = [this.#scope, ...spans]
    const whole = [this.#resource, this.#head(2, scoped), ...scoped]
    return Buffer.concat([this.#head(1, whole), ...whole])
  }

  /** What stands before the bytes in a message of this field. */
  #head(field: number, pieces: readonly Uint8Array[]): Uint8Array {
    this.#writer.head(
      field,
      pieces.reduce((sum, { length }) => sum + length, 0),
    )
    return this.#writer.take()
  }
}

/** The SDK's exporter for http/protobuf, except that its spans have their bytes already. */
export class EncodedExporter extends OTLPExporterBase<ReadableSpan[]> implements SpanExporter {
  constructor(origin: Origin) {
    // eslint-disable-next-line @typescript-eslint/no-deprecated -- so the SDK's own reads its variables
    const options = convertLegacyHttpOptions({}, 'TRACES', 'v1/traces', {
      'Content-Type': 'application/x-protobuf',
    })
    super(
      createOtlpHttpExportDelegate(
        options,
        new EncodedSerializer(origin),
        'otlp_http_span_exporter',
        TraceExporterMetricsHelper,
        undefined,
      ),
    )
  }

  override export(batches: ReadableSpan[], told: Parameters<SpanExporter['export']>[1]): void {
    super.export(batches, (result) => {
      for (const batch of batches) (batch as unknown as EncodedBatch).done()
      told(result)
    })
  }
}
