import type { SpanContext } from '@opentelemetry/api'
import type { SpanLimits } from './span-limits.ts'
import type { EndedSpan } from './span-rows.ts'
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

/** Where a span is in its trace. */
export interface SpanPlace {
  readonly context: SpanContext
  /** Undefined: the trace begins with it. */
  readonly parent: SpanContext | undefined
}

const NONE: never[] = []

/**
 * A span of times that are known already. A span of the SDK reads two clocks for each of its own, and checks
 * what it gets at every step.
 */
export class RecordedSpan implements EndedSpan {
  readonly context: SpanContext
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
  readonly #parent: SpanContext | undefined
  #isOver = false

  /** @param start milliseconds since the epoch, also of the other times */
  constructor(
    recording: Recording,
    name: string,
    { context, parent }: SpanPlace,
    start: number,
    isServer = false,
  ) {
    this.#recording = recording
    this.#parent = parent
    this.context = context
    this.name = name
    this.isServer = isServer
    this.start = this.end = start
  }

  get traceId(): string {
    return this.context.traceId
  }

  get spanId(): string {
    return this.context.spanId
  }

  get traceState(): string | undefined {
    return this.context.traceState?.serialize()
  }

  get parentId(): string | undefined {
    return this.#parent?.spanId
  }

  get isParentRemote(): boolean {
    return this.#parent?.isRemote === true
  }

  /** Adds attributes within the limits, without what is undefined. After the end it is too late. */
  set(attributes: SpanAttributes): void {
    if (this.#isOver) return
    const { limits } = this.#recording
    if (this.attributes === NONE) this.attributes = []
    const own = this.attributes
    const before = own.length
    for (const name in attributes) {
      // eslint-disable-next-line house/no-text-keys -- one of its own; ownValue takes three times as long
      const value = attributes[name]
      if (value === undefined) continue
      const at = placeOf(own, name, before)
      if (at < before) own[at + 1] = limits.cut(value)
      else if (own.length < 2 * limits.attributes) own.push(name, limits.cut(value))
      else this.droppedAttributes += 1
    }
  }

  event(name: string, at: number): void {
    if (this.events.length >= 2 * this.#recording.limits.events) this.droppedEvents += 1
    else this.events = [...this.events, name, at]
  }

  /** Hands it on. */
  ended(at: number): void {
    this.end = at
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
