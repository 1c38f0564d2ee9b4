import { ExportResultCode, globalErrorHandler } from '@opentelemetry/core'
import {
  convertLegacyHttpOptions,
  createOtlpHttpExportDelegate,
} from '@opentelemetry/otlp-exporter-base/node-http'
import { type ISerializer, ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer'
import { writeAttribute } from './encoded-spans.ts'
import type { Origin } from './exported-span.ts'
import { MEDIUM, ProtobufWriter, SHORT } from './protobuf-writer.ts'
import type { SpanAttribute } from './tracing.ts'
import { startTimer } from '../../../common/timer.ts'

/** Spans of EncodedSpans that are exported together. */
export interface EncodedBatch {
  /** Fields 2 of ScopeSpans, one behind the other. */
  readonly spans: Uint8Array
  readonly count: number
}

type Serializer = ISerializer<Uint8Array, ReturnType<typeof ProtobufTraceSerializer.deserializeResponse>>

/** Puts spans of EncodedSpans, one behind the other, into a request. */
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

  serializeRequest(spans: Uint8Array): Uint8Array {
    const scoped = [this.#scope, spans]
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

/** Exports side by side at a stop; the SDK's exporter refuses more than thirty. */
const MOST_AT_STOP = 20

/**
 * Exports batches over OTLP by http/protobuf, one after the other: with the SDK's sender, and without its
 * processor, which takes each span as an object, and then several times as long.
 */
export class EncodedExports {
  readonly #sender
  readonly #timeoutMs: number
  readonly #done: (batch: EncodedBatch) => void
  readonly #waiting: EncodedBatch[] = []
  #underWay = 0
  #most = 1
  #idle: () => void = () => undefined

  /**
   * @param timeoutMs for each export
   * @param done gets each batch that was exported, or given up
   */
  constructor(origin: Origin, timeoutMs: number, done: (batch: EncodedBatch) => void) {
    this.#timeoutMs = timeoutMs
    this.#done = done
    // eslint-disable-next-line @typescript-eslint/no-deprecated -- so the SDK's own reads its variables
    const options = convertLegacyHttpOptions({}, 'TRACES', 'v1/traces', {
      'Content-Type': 'application/x-protobuf',
    })
    this.#sender = createOtlpHttpExportDelegate(
      options,
      new EncodedSerializer(origin),
      'otlp_http_span_exporter',
      // For metrics of the sender's own, which it has no provider for.
      { name: 'span', countItems: () => 0 },
      undefined,
    )
  }

  add(batch: EncodedBatch): void {
    this.#waiting.push(batch)
    this.#next()
  }

  /** Resolves when all are exported, or given up. */
  async close(): Promise<void> {
    this.#most = MOST_AT_STOP
    this.#next()
    if (this.#underWay > 0) await new Promise<void>((resolve) => (this.#idle = resolve))
    // The sender keeps nothing, and would wait for what was given up.
  }

  #next(): void {
    while (this.#underWay < this.#most && this.#waiting.length > 0) void this.#export(this.#waiting.shift()!)
  }

  async #export(batch: EncodedBatch): Promise<void> {
    this.#underWay += 1
    await this.#send(batch.spans).catch(globalErrorHandler)
    this.#underWay -= 1
    this.#done(batch)
    this.#next()
    if (this.#underWay === 0) this.#idle()
  }

  /** @throws whatever kept it from being exported */
  #send(spans: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = startTimer(
        () => reject(new Error(`not done after ${this.#timeoutMs} ms`)),
        this.#timeoutMs,
      )
      this.#sender.export(spans, ({ code, error }) => {
        clearTimeout(timer)
        if (code === ExportResultCode.SUCCESS) resolve()
        else reject(error ?? new Error('The export failed'))
      })
    })
  }
}
