import { SpanKind, SpanStatusCode, TraceFlags } from '@opentelemetry/api'
import { MEDIUM, ProtobufWriter, SHORT } from './protobuf-writer.ts'
import { SPAN_BYTES, TRACE_BYTES } from './span-ids.ts'
import type { EndedSpan } from './span-rows.ts'
import type { SpanAttribute } from './tracing.ts'

const HAS_IS_REMOTE = 0x100
const IS_REMOTE = 0x200
const TIME_BYTES = 8

/** Names of spans that are remembered: those of routes, models and phases. */
const MAX_NAMES = 64

/** The last span of its name. Where something begins in it counts from its own beginning. */
interface Written {
  span: EndedSpan
  /** Where it is in the writer. */
  from: number
  to: number
  traceId: number
  spanId: number
  parentId: number
  start: number
  end: number
  /** The texts of its attributes; 0: the value is no short text of ASCII. */
  readonly texts: number[]
  /** The times of its events. */
  readonly times: number[]
}

/**
 * Spans as OTLP has them in protobuf, each as field 2 of ScopeSpans: the same bytes as the SDK's serializer,
 * which takes ten times as long, because it walks objects. They need no further work until they are sent.
 * Most spans differ from the one of their name before only in ids, times, and texts as long as before: such a
 * one is a copy in which these are set.
 * https://github.com/open-telemetry/opentelemetry-proto/blob/main/opentelemetry/proto/trace/v1/trace.proto
 */
export class EncodedSpans {
  readonly #writer = new ProtobufWriter()
  readonly #written = new Map<string, Written>()
  /** A second since the epoch, and its words as nanoseconds. */
  #seconds = 0
  #low = 0
  #high = 0

  /** What was added; nothing is then. */
  take(): Uint8Array {
    this.#written.clear()
    return this.#writer.take()
  }

  /** Nobody reads any more what `take` has returned. */
  giveBack(taken: Uint8Array): void {
    this.#writer.giveBack(taken)
  }

  get bytes(): number {
    return this.#writer.position
  }

  add(span: EndedSpan): void {
    const written = this.#written.get(span.name)
    if (written === undefined || !this.#again(written, span)) this.#write(span)
  }

  /** False, and nothing is written: it differs in something else. */
  #again(written: Written, span: EndedSpan): boolean {
    if (!isLike(span, written.span)) return false
    const writer = this.#writer
    const from = writer.position
    writer.again(written.from, written.to)
    if (!this.#setTexts(written, span.attributes, from)) {
      writer.back(from)
      return false
    }
    writer.setTraceId(from + written.traceId, span.traceId)
    writer.setSpanId(from + written.spanId, span.spanId)
    if (span.parentId !== undefined) writer.setSpanId(from + written.parentId, span.parentId)
    this.#setTime(from + written.start, span.start)
    this.#setTime(from + written.end, span.end)
    const { events } = span
    for (let i = 0; i < events.length; i += 2)
      this.#setTime(from + written.times[i / 2]!, events[i + 1] as number)
    written.span = span
    written.from = from
    written.to = writer.position
    return true
  }

  /** False: they differ in something else than short texts of the same length. */
  #setTexts({ span, texts }: Written, attributes: readonly SpanAttribute[], from: number): boolean {
    const before = span.attributes
    for (let i = 0; i < attributes.length; i += 2) {
      if (attributes[i] !== before[i]) return false
      const value = attributes[i + 1]!
      const other = before[i + 1]!
      if (value === other) continue
      const at = texts[i / 2]!
      if (at === 0 || typeof value !== 'string' || value.length !== (other as string).length) return false
      if (!this.#writer.setText(from + at, value)) return false
    }
    return true
  }

  #write(span: EndedSpan): void {
    const writer = this.#writer
    const { attributes, events, parentId, traceState } = span
    const texts: number[] = []
    const times: number[] = []
    const from = writer.position
    const lengthBytes = attributes.length === 0 ? SHORT : MEDIUM
    const message = writer.begin(2, lengthBytes)
    writer.traceId(1, span.traceId)
    const traceIdEnd = writer.position
    writer.spanId(2, span.spanId)
    const spanIdEnd = writer.position
    if (traceState !== undefined && traceState !== '') writer.text(3, traceState)
    if (parentId !== undefined) writer.spanId(4, parentId)
    const parentIdEnd = writer.position
    writer.text(5, span.name)
    writer.number(6, (span.isServer ? SpanKind.SERVER : SpanKind.INTERNAL) + 1)
    this.#time(7, span.start)
    const startEnd = writer.position
    this.#time(8, span.end)
    const endEnd = writer.position
    for (let i = 0; i < attributes.length; i += 2) {
      const value = attributes[i + 1]!
      const isPlain = writeAttribute(writer, 9, attributes[i] as string, value)
      texts.push(isPlain ? writer.position - (value as string).length : 0)
    }
    writer.number(10, span.droppedAttributes)
    for (let i = 0; i < events.length; i += 2)
      times.push(this.#event(events[i] as string, events[i + 1] as number))
    writer.number(12, span.droppedEvents)
    // No links.
    writer.number(14, 0)
    const status = writer.begin(15, SHORT)
    writer.number(3, span.failed ? SpanStatusCode.ERROR : SpanStatusCode.UNSET)
    writer.end(status, SHORT)
    const isRemote = parentId !== undefined && span.isParentRemote
    writer.fixed32(16, TraceFlags.SAMPLED | HAS_IS_REMOTE | (isRemote ? IS_REMOTE : 0))
    const moved = writer.end(message, lengthBytes) - message - from
    if (this.#written.size >= MAX_NAMES) this.#written.clear()
    this.#written.set(span.name, {
      span,
      from,
      to: writer.position,
      traceId: traceIdEnd - TRACE_BYTES + moved,
      spanId: spanIdEnd - SPAN_BYTES + moved,
      parentId: parentIdEnd - SPAN_BYTES + moved,
      start: startEnd - TIME_BYTES + moved,
      end: endEnd - TIME_BYTES + moved,
      texts: texts.map((at) => (at === 0 ? 0 : at + moved)),
      times: times.map((at) => at + moved),
    })
  }

  /** @returns where its time begins */
  #event(name: string, at: number): number {
    const writer = this.#writer
    const message = writer.begin(11, SHORT)
    this.#time(1, at)
    const timeEnd = writer.position
    writer.text(2, name)
    writer.number(4, 0)
    return timeEnd - TIME_BYTES + writer.end(message, SHORT) - message
  }

  #time(field: number, at: number): void {
    this.#writer.fixed64(field, 0, 0)
    this.#setTime(this.#writer.position - TIME_BYTES, at)
  }

  /** Nanoseconds, which have more digits than a number: two words. */
  #setTime(position: number, at: number): void {
    // A clock that was never set may be before it.
    const milliseconds = at > 0 ? at : 0
    const seconds = Math.trunc(milliseconds / 1_000)
    if (seconds !== this.#seconds) this.#begin(seconds)
    const low = this.#low + Math.round((milliseconds - seconds * 1_000) * 1e6)
    const carry = low >= 2 ** 32 ? 1 : 0
    this.#writer.setFixed64(position, low - carry * 2 ** 32, this.#high + carry)
  }

  /** Nearly all times are of the same second as the one before. */
  #begin(seconds: number): void {
    this.#seconds = seconds
    const nanoseconds = BigInt(seconds) * 1_000_000_000n
    this.#low = Number(BigInt.asUintN(32, nanoseconds))
    this.#high = Number(BigInt.asUintN(32, nanoseconds >> 32n))
  }
}

/** Whether they have the same fields, but for ids, times, and the values of attributes. */
function isLike(span: EndedSpan, other: EndedSpan): boolean {
  return (
    span.attributes.length === other.attributes.length &&
    hasSameEvents(span, other) &&
    (span.parentId === undefined) === (other.parentId === undefined) &&
    span.isServer === other.isServer &&
    span.isParentRemote === other.isParentRemote &&
    span.failed === other.failed &&
    span.droppedAttributes === other.droppedAttributes &&
    span.droppedEvents === other.droppedEvents &&
    span.traceState === other.traceState
  )
}

function hasSameEvents({ events }: EndedSpan, { events: others }: EndedSpan): boolean {
  if (events.length !== others.length) return false
  for (let i = 0; i < events.length; i += 2) if (events[i] !== others[i]) return false
  return true
}

/** KeyValue, of a span or of a resource. @returns whether its value is a short text of ASCII, and its end */
export function writeAttribute(
  writer: ProtobufWriter,
  field: number,
  name: string,
  value: SpanAttribute,
): boolean {
  const message = writer.begin(field, SHORT)
  writer.text(1, name)
  const isPlain = writeValue(writer, 2, value)
  writer.end(message, SHORT)
  return isPlain
}

function writeValue(writer: ProtobufWriter, field: number, value: SpanAttribute): boolean {
  const message = writer.begin(field, SHORT)
  let isPlain = false
  if (typeof value === 'string') isPlain = writer.text(1, value)
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
  return isPlain
}
