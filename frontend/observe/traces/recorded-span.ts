import type { Context, TraceState } from '@opentelemetry/api'
import type { SpanId, TraceId } from './span-ids.ts'
import type { SpanLimits } from './span-limits.ts'
import type { EndedSpan } from './span-rows.ts'
import { traceparentOf } from './trace-headers.ts'
import type { SpanAttribute, SpanAttributes } from './tracing.ts'

/** Takes spans that have ended. */
export interface SpanOutlet {
  add(span: EndedSpan): void
}

/** What all spans have in common, and where they go. */
export interface Recording {
  readonly limits: SpanLimits
  readonly outlet: SpanOutlet
}

/** What the spans of one request have in common. */
export interface RecordedTrace {
  readonly id: TraceId
  /** The client's. */
  readonly state: TraceState | undefined
  /** What the client sent: goes on to the handler. */
  readonly client: Context
  /** Milliseconds from performance.now() to the epoch. */
  readonly epoch: number
}

const NONE: never[] = []

/**
 * A span of times that are known already. A span of the SDK reads two clocks for each of its own, and checks
 * what it gets at every step.
 */
export class RecordedSpan implements EndedSpan {
  readonly trace: RecordedTrace
  readonly spanId: SpanId
  readonly parentId: SpanId | undefined
  readonly isServer: boolean
  readonly start: number
  end: number
  name: string
  failed = false
  attributes: SpanAttribute[] = NONE
  events: (string | number)[] = NONE
  droppedAttributes = 0
  droppedEvents = 0
  readonly #recording: Recording
  #isOver = false

  /**
   * @param parentId undefined: the trace begins with it
   * @param start performance.now(), as all times that it gets
   */
  constructor(
    recording: Recording,
    trace: RecordedTrace,
    name: string,
    spanId: SpanId,
    parentId: SpanId | undefined,
    start: number,
    isServer = false,
  ) {
    this.#recording = recording
    this.trace = trace
    this.name = name
    this.spanId = spanId
    this.parentId = parentId
    this.isServer = isServer
    this.start = this.end = trace.epoch + start
  }

  get traceId(): TraceId {
    return this.trace.id
  }

  get traceparent(): string {
    return traceparentOf(this.trace.id.text, this.spanId.text, true)
  }

  get traceState(): string | undefined {
    return this.trace.state?.serialize()
  }

  /** Only that of a request is below one that came from elsewhere. */
  get isParentRemote(): boolean {
    return this.isServer && this.parentId !== undefined
  }

  /** Adds attributes within the limits, without what is undefined. After the end it is too late. */
  set(attributes: SpanAttributes): void {
    if (this.#isOver) return
    const { limits } = this.#recording
    if (this.attributes === NONE) this.attributes = []
    const own = this.attributes
    const before = own.length
    for (let i = 0; i < attributes.length; i += 2) {
      const name = attributes[i] as string
      const value = attributes[i + 1]
      if (value === undefined) continue
      const at = placeOf(own, name, before)
      if (at < before) own[at + 1] = limits.cut(value)
      else if (own.length < 2 * limits.attributes) own.push(name, limits.cut(value))
      else this.droppedAttributes += 1
    }
  }

  event(name: string, at: number): void {
    if (this.events.length >= 2 * this.#recording.limits.events) this.droppedEvents += 1
    else this.events = [...this.events, name, this.trace.epoch + at]
  }

  /** Hands it on. */
  ended(at: number): void {
    this.end = this.trace.epoch + at
    this.#isOver = true
    this.#recording.outlet.add(this)
  }
}

/** Where a name is among the first `end` names and values in turns; `end`: it is not there. */
function placeOf(attributes: readonly SpanAttribute[], name: string, end: number): number {
  let at = 0
  while (at < end && attributes[at] !== name) at += 2
  return at
}
