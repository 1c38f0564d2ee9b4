import {
  type Attributes,
  createTraceState,
  type HrTime,
  type SpanContext,
  SpanKind,
  type SpanStatus,
  SpanStatusCode,
  TraceFlags,
} from '@opentelemetry/api'
import { hrTimeDuration, type InstrumentationScope, millisToHrTime } from '@opentelemetry/core'
import type { Resource } from '@opentelemetry/resources'
import type { ReadableSpan, TimedEvent } from '@opentelemetry/sdk-trace'
import { setOwn } from '../../../common/own-keys.ts'
import type { EndedSpan } from './span-rows.ts'

/** What all spans have in common. */
export interface Origin {
  readonly resource: Resource
  readonly scope: InstrumentationScope
}

const UNSET: SpanStatus = { code: SpanStatusCode.UNSET }
const ERROR: SpanStatus = { code: SpanStatusCode.ERROR }
const NO_LINKS: ReadableSpan['links'] = []

/** A span as the SDK's processors and exporters take it. */
export class ExportedSpan implements ReadableSpan {
  readonly links = NO_LINKS
  readonly droppedLinksCount = 0
  readonly ended = true
  readonly name: string
  readonly kind: SpanKind
  readonly parentSpanContext: SpanContext | undefined
  readonly startTime: HrTime
  readonly endTime: HrTime
  readonly status: SpanStatus
  readonly attributes: Attributes
  readonly events: TimedEvent[]
  readonly droppedAttributesCount: number
  readonly droppedEventsCount: number
  readonly #context: SpanContext
  readonly #origin: Origin

  constructor(span: EndedSpan, origin: Origin) {
    const { parentId } = span
    const traceId = span.traceId.text
    const traceFlags = TraceFlags.SAMPLED
    const traceState = span.traceState === undefined ? undefined : createTraceState(span.traceState)
    this.#origin = origin
    this.#context = { traceId, spanId: span.spanId.text, traceFlags, traceState }
    this.parentSpanContext =
      parentId === undefined
        ? undefined
        : { traceId, spanId: parentId.text, traceFlags, traceState, isRemote: span.isParentRemote }
    this.name = span.name
    this.kind = span.isServer ? SpanKind.SERVER : SpanKind.INTERNAL
    this.startTime = millisToHrTime(span.start)
    this.endTime = millisToHrTime(span.end)
    this.status = span.failed ? ERROR : UNSET
    this.attributes = attributesOf(span)
    this.events = eventsOf(span)
    this.droppedAttributesCount = span.droppedAttributes
    this.droppedEventsCount = span.droppedEvents
  }

  spanContext(): SpanContext {
    return this.#context
  }

  get duration(): HrTime {
    return hrTimeDuration(this.startTime, this.endTime)
  }

  get resource(): Resource {
    return this.#origin.resource
  }

  get instrumentationScope(): InstrumentationScope {
    return this.#origin.scope
  }
}

function attributesOf({ attributes }: EndedSpan): Attributes {
  const record: Attributes = {}
  for (let i = 0; i < attributes.length; i += 2) setOwn(record, attributes[i] as string, attributes[i + 1])
  return record
}

function eventsOf({ events }: EndedSpan): TimedEvent[] {
  const list: TimedEvent[] = []
  for (let i = 0; i < events.length; i += 2)
    list.push({ name: events[i] as string, time: millisToHrTime(events[i + 1] as number) })
  return list
}
