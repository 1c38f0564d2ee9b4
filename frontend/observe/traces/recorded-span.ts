import {
  type Attributes,
  type HrTime,
  type SpanContext,
  SpanKind,
  type SpanStatus,
  SpanStatusCode,
} from '@opentelemetry/api'
import { hrTimeDuration, type InstrumentationScope, millisToHrTime } from '@opentelemetry/core'
import type { Resource } from '@opentelemetry/resources'
import type { ReadableSpan, SpanProcessor, TimedEvent } from '@opentelemetry/sdk-trace'
import { ownValue, setOwn } from '../../../common/own-keys.ts'
import type { SpanLimits } from './span-limits.ts'
import type { SpanAttributes } from './tracing.ts'

/** What all spans have in common, and where they go. */
export interface Recording {
  readonly resource: Resource
  readonly scope: InstrumentationScope
  readonly limits: SpanLimits
  readonly processors: readonly SpanProcessor[]
}

/** Where a span is in its trace. */
export interface SpanPlace {
  readonly context: SpanContext
  /** Undefined: the trace begins with it. */
  readonly parent: SpanContext | undefined
}

const UNSET: SpanStatus = { code: SpanStatusCode.UNSET }
const ERROR: SpanStatus = { code: SpanStatusCode.ERROR }
const NO_LINKS: ReadableSpan['links'] = []
const NO_EVENTS: TimedEvent[] = []
const NO_ATTRIBUTES: Attributes = {}

/**
 * A span for the processors of OpenTelemetry's SDK, of times that are known already. A span of the SDK itself
 * reads two clocks for each of its own, and checks what it gets at every step.
 */
export class RecordedSpan implements ReadableSpan {
  readonly links = NO_LINKS
  readonly droppedLinksCount = 0
  readonly ended = true
  readonly kind: SpanKind
  readonly parentSpanContext: SpanContext | undefined
  readonly startTime: HrTime
  endTime: HrTime
  name: string
  status = UNSET
  attributes = NO_ATTRIBUTES
  events = NO_EVENTS
  droppedAttributesCount = 0
  droppedEventsCount = 0
  readonly #recording: Recording
  readonly #context: SpanContext
  #count = 0

  /** @param start milliseconds since the epoch, also of the other times */
  constructor(
    recording: Recording,
    name: string,
    { context, parent }: SpanPlace,
    start: number,
    kind = SpanKind.INTERNAL,
  ) {
    this.#recording = recording
    this.#context = context
    this.name = name
    this.kind = kind
    this.parentSpanContext = parent
    this.startTime = this.endTime = millisToHrTime(start)
  }

  spanContext(): SpanContext {
    return this.#context
  }

  get resource(): Resource {
    return this.#recording.resource
  }

  get instrumentationScope(): InstrumentationScope {
    return this.#recording.scope
  }

  get duration(): HrTime {
    return hrTimeDuration(this.startTime, this.endTime)
  }

  /** Adds attributes within the limits, without what is undefined. */
  set(attributes: SpanAttributes): void {
    const { limits } = this.#recording
    if (this.attributes === NO_ATTRIBUTES) this.attributes = {}
    const own = this.attributes
    for (const name of Object.keys(attributes)) {
      const value = ownValue(attributes, name)
      if (value === undefined) continue
      const isNew = ownValue(own, name) === undefined
      if (isNew && this.#count >= limits.attributes) this.droppedAttributesCount += 1
      else setOwn(own, name, limits.cut(value))
      if (isNew) this.#count += 1
    }
  }

  event(name: string, at: number): void {
    if (this.events.length < this.#recording.limits.events)
      this.events = [...this.events, { name, time: millisToHrTime(at) }]
    else this.droppedEventsCount += 1
  }

  fail(): void {
    this.status = ERROR
  }

  /** Hands it to the processors. */
  end(at: number): void {
    this.endTime = millisToHrTime(at)
    for (const processor of this.#recording.processors) processor.onEnd(this)
  }
}
