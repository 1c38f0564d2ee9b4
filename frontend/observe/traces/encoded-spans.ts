import { SpanKind, SpanStatusCode, TraceFlags } from '@opentelemetry/api'
import { MEDIUM, ProtobufWriter, SHORT } from './protobuf-writer.ts'
import type { EndedSpan } from './span-rows.ts'
import type { SpanAttribute } from './tracing.ts'

const HAS_IS_REMOTE = 0x100
const IS_REMOTE = 0x200

/** The attributes of the last span of its kind. */
interface Written {
  attributes: readonly SpanAttribute[]
  /** Where each begins in the span and, at the end, where the last one ends. */
  readonly starts: number[]
  /** Where the span begins in the writer. */
  span: number
}

/**
 * Spans as OTLP has them in protobuf, each as field 2 of ScopeSpans: the same bytes as the SDK's serializer,
 * which takes ten times as long, because it walks objects. They need no further work until they are sent.
 * https://github.com/open-telemetry/opentelemetry-proto/blob/main/opentelemetry/proto/trace/v1/trace.proto
 */
export class EncodedSpans {
  readonly #writer = new ProtobufWriter()
  /** Most attributes are the same again as in the span before of the same kind, and are copied. */
  readonly #request: Written = { attributes: [], starts: [], span: 0 }
  readonly #job: Written = { attributes: [], starts: [], span: 0 }
  /** A second since the epoch, and its words as nanoseconds. */
  #seconds = 0
  #low = 0
  #high = 0

  /** What was added; nothing is then. */
  take(): Uint8Array<ArrayBuffer> {
    this.#request.attributes = this.#job.attributes = []
    return this.#writer.take()
  }

  get bytes(): number {
    return this.#writer.position
  }

  add(span: EndedSpan): void {
    const writer = this.#writer
    const { attributes, events, parentId, traceState } = span
    const lengthBytes = attributes.length === 0 ? SHORT : MEDIUM
    const message = writer.begin(2, lengthBytes)
    writer.hex(1, span.traceId)
    writer.hex(2, span.spanId)
    if (traceState !== undefined && traceState !== '') writer.text(3, traceState)
    if (parentId !== undefined) writer.hex(4, parentId)
    writer.text(5, span.name)
    writer.number(6, (span.isServer ? SpanKind.SERVER : SpanKind.INTERNAL) + 1)
    this.#time(7, span.start)
    this.#time(8, span.end)
    const written = span.isServer ? this.#request : this.#job
    if (attributes.length > 0) this.#attributes(attributes, written, message)
    writer.number(10, span.droppedAttributes)
    for (let i = 0; i < events.length; i += 2) this.#event(events[i] as string, events[i + 1] as number)
    writer.number(12, span.droppedEvents)
    // No links.
    writer.number(14, 0)
    const status = writer.begin(15, SHORT)
    writer.number(3, span.failed ? SpanStatusCode.ERROR : SpanStatusCode.UNSET)
    writer.end(status, SHORT)
    const isRemote = parentId !== undefined && span.isParentRemote
    writer.fixed32(16, TraceFlags.SAMPLED | HAS_IS_REMOTE | (isRemote ? IS_REMOTE : 0))
    const begins = writer.end(message, lengthBytes)
    if (attributes.length > 0) written.span = begins
  }

  /** @param message where the span begins */
  #attributes(attributes: readonly SpanAttribute[], written: Written, message: number): void {
    const writer = this.#writer
    const { starts, span } = written
    for (let at = 0; at < attributes.length;) {
      const from = writer.position - message
      const next = afterSame(attributes, written.attributes, at)
      if (next === at) {
        starts[at / 2] = from
        writeAttribute(writer, 9, attributes[at] as string, attributes[at + 1]!)
        at += 2
        continue
      }
      const moved = from - starts[at / 2]!
      writer.again(span + starts[at / 2]!, span + starts[next / 2]!)
      for (; at < next; at += 2) starts[at / 2]! += moved
    }
    starts[attributes.length / 2] = writer.position - message
    written.attributes = attributes
  }

  #event(name: string, at: number): void {
    const message = this.#writer.begin(11, SHORT)
    this.#time(1, at)
    this.#writer.text(2, name)
    this.#writer.number(4, 0)
    this.#writer.end(message, SHORT)
  }

  /** Nanoseconds, which have more digits than a number: two words. */
  #time(field: number, at: number): void {
    // A clock that was never set may be before it.
    const milliseconds = at > 0 ? at : 0
    const seconds = Math.trunc(milliseconds / 1_000)
    if (seconds !== this.#seconds) this.#begin(seconds)
    const low = this.#low + Math.round((milliseconds - seconds * 1_000) * 1e6)
    const carry = low >= 2 ** 32 ? 1 : 0
    this.#writer.fixed64(field, low - carry * 2 ** 32, this.#high + carry)
  }

  /** Nearly all times are of the same second as the one before. */
  #begin(seconds: number): void {
    this.#seconds = seconds
    const nanoseconds = BigInt(seconds) * 1_000_000_000n
    this.#low = Number(BigInt.asUintN(32, nanoseconds))
    this.#high = Number(BigInt.asUintN(32, nanoseconds >> 32n))
  }
}

/** Where attributes end that are the same from there on: names and values in turns. */
function afterSame(some: readonly SpanAttribute[], others: readonly SpanAttribute[], from: number): number {
  const end = Math.min(some.length, others.length)
  let at = from
  while (at < end && some[at] === others[at] && some[at + 1] === others[at + 1]) at += 2
  return at
}

/** KeyValue, of a span or of a resource. */
export function writeAttribute(
  writer: ProtobufWriter,
  field: number,
  name: string,
  value: SpanAttribute,
): void {
  const message = writer.begin(field, SHORT)
  writer.text(1, name)
  writeValue(writer, 2, value)
  writer.end(message, SHORT)
}

function writeValue(writer: ProtobufWriter, field: number, value: SpanAttribute): void {
  const message = writer.begin(field, SHORT)
  if (typeof value === 'string') writer.text(1, value)
  else if (typeof value === 'boolean') writer.number(2, Number(value))
  else if (typeof value === 'number') {
    const isInt64 = Number.isInteger(value) && value >= -(2 ** 63) && value < 2 ** 63
    if (isInt64) writer.int64(3, value)
    else writer.double(4, value)
  } else {
    const list = writer.begin(5, SHORT)
    for (const each of value) writeValue(writer, 1, each)
    writer.end(list, SHORT)
  }
  writer.end(message, SHORT)
}
