import {
  type Attributes,
  createTraceState,
  type HrTime,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type TraceState,
} from '@opentelemetry/api'
import { hrTimeDuration, type InstrumentationScope, millisToHrTime } from '@opentelemetry/core'
import type { Resource } from '@opentelemetry/resources'
import type { ReadableSpan } from '@opentelemetry/sdk-trace'
import type { EndedSpan } from './span-rows.ts'

/** What all spans have in common. */
export interface Origin {
  readonly resource: Resource
  readonly instrumentationScope: InstrumentationScope
}

/** A span as the SDK's processors and exporters take it. */
export function exported(span: EndedSpan, { resource, instrumentationScope }: Origin): ReadableSpan {
  const { traceId, spanId, parentId } = span
  const traceState = span.traceState === undefined ? undefined : createTraceState(span.traceState)
  const context = contextOf(traceId, spanId, traceState, false)
  const startTime = millisToHrTime(span.start)
  const endTime = millisToHrTime(span.end)
  return {
    name: span.name,
    kind: span.isServer ? SpanKind.SERVER : SpanKind.INTERNAL,
    spanContext: () => context,
    parentSpanContext:
      parentId === undefined ? undefined : contextOf(traceId, parentId, traceState, span.isParentRemote),
    startTime,
    endTime,
    duration: hrTimeDuration(startTime, endTime),
    status: { code: span.failed ? SpanStatusCode.ERROR : SpanStatusCode.UNSET },
    attributes: attributesOf(span),
    events: eventsOf(span),
    links: [],
    ended: true,
    resource,
    instrumentationScope,
    droppedAttributesCount: span.droppedAttributes,
    droppedEventsCount: span.droppedEvents,
    droppedLinksCount: 0,
  }
}

function contextOf(
  traceId: string,
  spanId: string,
  traceState: TraceState | undefined,
  isRemote: boolean,
): SpanContext {
  return { traceId, spanId, traceFlags: TraceFlags.SAMPLED, traceState, isRemote }
}

function attributesOf({ attributes }: EndedSpan): Attributes {
  const entries = Array.from({ length: attributes.length / 2 }, (_, i) => [
    attributes[2 * i],
    attributes[2 * i + 1],
  ])
  return Object.fromEntries(entries) as Attributes
}

function eventsOf({ events }: EndedSpan): { name: string; time: HrTime }[] {
  return Array.from({ length: events.length / 2 }, (_, i) => ({
    name: events[2 * i] as string,
    time: millisToHrTime(events[2 * i + 1] as number),
  }))
}
